import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { LSN_ZERO } from '../../../src/replication/lsn.js'
import { publicationNames, startCommand } from '../../../src/replication/stream.js'
import { asNotValid } from '../../../src/reshard/schema/copy-schema.js'
import { fitted, splitEntries } from '../../../src/reshard/schema/dump-schema.js'
import { stageEntries } from '../../../src/reshard/schema/entry-stage.js'
import { sequenceSql } from '../../../src/reshard/schema/sequences.js'

const dump = `SET statement_timeout = 0;
SET transaction_timeout = 0;
\\restrict abc
--
-- Name: t t_pkey; Type: CONSTRAINT; Schema: public; Owner: x
--

ALTER TABLE ONLY public.t
    ADD CONSTRAINT t_pkey PRIMARY KEY (id);


--
-- Name: t t_fkey; Type: FK CONSTRAINT; Schema: public; Owner: x
--

ALTER TABLE ONLY public.t
    ADD CONSTRAINT t_fkey FOREIGN KEY (id) REFERENCES public.o(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--

\\unrestrict abc
`

test('lines that older servers and pg do not know are dropped', () => {
  expect(fitted(dump, 16)).not.toMatch(/restrict|transaction_timeout/)
  expect(fitted(dump, 17)).toContain('SET transaction_timeout = 0;')
})

test('post-data is cut into its objects; foreign keys wait and are made without a check', () => {
  const entries = splitEntries(fitted(dump, 15))
  expect(entries.map(({ type, name }) => [type, name])).toEqual([
    ['CONSTRAINT', 't t_pkey'],
    ['FK CONSTRAINT', 't t_fkey'],
  ])
  const [primary, foreign] = entries as [(typeof entries)[0], (typeof entries)[0]]
  const stages = stageEntries(entries)
  expect([stages.get(primary), stages.get(foreign)]).toEqual(['keys', 'late'])
  expect(asNotValid(primary)).toBe(primary.sql)
  expect(asNotValid(foreign).endsWith('ON DELETE CASCADE NOT VALID;')).toBe(true)
})

const state = (last: bigint | undefined, increment = 1n) => ({
  name: 'public.s',
  last,
  increment,
  tables: ['public.t'],
})

test('sequences of sharded tables become disjoint, ahead of all', () => {
  const sql = [0, 1, 2].map((shard) =>
    sequenceSql([state(7n), state(12n)], { shard, count: 3, isSharded: true }),
  )
  // After 12: 16, 17 and 18 are the first that leave 1, 2 and 0 when divided by 3.
  expect(sql.map((text) => /, (\d+), false/.exec(text ?? '')?.[1])).toEqual(['16', '17', '18'])
  expect(sql.every((text) => text?.includes('INCREMENT BY 3'))).toBe(true)
})

test('other sequences go on after the furthest, in their direction; untouched ones stay', () => {
  const other = { shard: 0, count: 3, isSharded: false }
  expect(sequenceSql([state(7n), state(12n)], other)).toContain('12, true')
  expect(sequenceSql([state(-7n, -1n), state(-12n, -1n)], other)).toContain('-12, true')
  expect(sequenceSql([state(undefined)], other)).toBeUndefined()
})

test('START_REPLICATION quotes names inside of a quoted list', () => {
  expect(publicationNames(['a', 'b "c\'s"'])).toBe(`"a","b ""c's"""`)
  const command = startCommand({
    target: { host: 'h', port: 1, user: 'u', database: 'd' },
    slot: 's',
    publications: ["o'b"],
    startLsn: LSN_ZERO,
    serverVersion: 160004,
    binary: true,
    origin: 'any',
    clock: systemClock,
  })
  expect(command).toBe(
    `START_REPLICATION SLOT "s" LOGICAL 0/0 (proto_version '4', publication_names '"o''b"', messages 'true', binary 'true', origin 'any')`,
  )
})
