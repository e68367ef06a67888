/** Sequences of a table that was just made: counted in steps of the number of shards, as `pgshard setup` does with older ones. */
import type { NamedRelation } from '../sql/describe-ddl.js'
import { quoteName, quoteText } from './writes/write-text.js'

/**
 * What a shard is asked behind CREATE TABLE, so that it draws other numbers than the others do. A sequence that has given
 * a number, or that counts in steps of its maker's choice, is left as it is.
 */
export function ownSequencesApart(
  table: NamedRelation,
): (shard: number, shardCount: number) => string {
  const path = [...(table.schema === undefined ? [] : [table.schema]), table.name]
  const name = quoteText(path.map(quoteName).join('.'))
  return (shard, shardCount) => `DO $pgshard$ DECLARE own pg_catalog.regclass; BEGIN
  FOR own IN SELECT d.objid FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_sequence s ON s.seqrelid = d.objid
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refobjid = pg_catalog.to_regclass(${name}) AND d.deptype IN ('a', 'i')
      AND s.seqincrement = 1 AND pg_catalog.pg_sequence_last_value(s.seqrelid) IS NULL
  LOOP
    EXECUTE pg_catalog.format('ALTER SEQUENCE %s INCREMENT BY ${shardCount} START WITH ${shard + 1} RESTART', own);
  END LOOP; END $pgshard$`
}

/**
 * What a shard is asked behind TRUNCATE … RESTART IDENTITY: sequences that count in steps of the number of shards and were
 * put back to their start, which is the same on all, go to a start of the shard's own. CASCADE may have reached any table.
 */
export const restartedApart = (shard: number, shardCount: number): string => `DO $pgshard$ DECLARE
  own pg_catalog.regclass; start bigint; last bigint; called boolean; BEGIN
  FOR own, start IN SELECT DISTINCT s.seqrelid, s.seqstart FROM pg_catalog.pg_sequence s
    JOIN pg_catalog.pg_depend d ON d.objid = s.seqrelid AND d.deptype IN ('a', 'i')
      AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    WHERE s.seqincrement = ${shardCount} AND s.seqstart <> ${shard + 1}
  LOOP
    EXECUTE pg_catalog.format('SELECT last_value, is_called FROM %s', own) INTO last, called;
    IF last = start AND NOT called THEN
      EXECUTE pg_catalog.format('ALTER SEQUENCE %s START WITH ${shard + 1} RESTART', own);
    END IF;
  END LOOP; END $pgshard$`
