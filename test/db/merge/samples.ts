/** Values of each type that is merged, as SQL: `random()` makes most of them, corners are written out. */
import { typeOids } from '../../../src/merge/keys/type-oids.js'

interface Sample {
  readonly type: string
  readonly oid: number
  /** An expression over g = 1 … 60. */
  readonly random: string
  /** Literals. */
  readonly corners: readonly string[]
}

const signed = '(random() * 2 - 1)'
const letters = `(SELECT string_agg(chr((ARRAY[32, 65, 97, 98, 122, 228, 8364, 128512])[1 + floor(random() * 8)::int]), '') FROM generate_series(1, g % 11))`

export const samples: readonly Sample[] = [
  { type: 'bool', oid: typeOids.bool, random: `random() < 0.5`, corners: [] },
  {
    type: 'smallint',
    oid: typeOids.int2,
    random: `(${signed} * 32767)::int2`,
    corners: ['32767', '-32768', '0', '-1', '1'],
  },
  {
    type: 'integer',
    oid: typeOids.int4,
    random: `(${signed} * 2147483647)::int4`,
    corners: ['2147483647', '-2147483648', '0', '-1', '10', '9'],
  },
  {
    type: 'bigint',
    oid: typeOids.int8,
    random: `trunc(${signed}::numeric * 10 ^ (g % 19))::int8`,
    corners: [
      '9223372036854775807',
      '-9223372036854775808',
      '9223372036854775806',
      '9007199254740993',
      '9007199254740992',
      '1000000000000000',
      '999999999999999',
      '-1000000000000000',
      '-1',
      '0',
    ],
  },
  {
    type: 'oid',
    oid: typeOids.oid,
    random: `floor(random() * 4294967295)::int8::oid`,
    corners: ['0', '4294967295', '2147483648'],
  },
  {
    type: 'xid8',
    oid: typeOids.xid8,
    random: `floor(random() * 1e18)::int8::text::xid8`,
    corners: ['0', '18446744073709551615', '9223372036854775808'],
  },
  {
    type: 'real',
    oid: typeOids.float4,
    random: `(${signed} * 10 ^ (g % 60 - 30))::float4`,
    corners: ['NaN', 'Infinity', '-Infinity', '-0', '0', '0.1', '1e-45', '3.4028235e38', '1e6'],
  },
  {
    type: 'double precision',
    oid: typeOids.float8,
    random: `${signed} * 10 ^ (g * 10 - 300)`,
    corners: ['NaN', 'Infinity', '-Infinity', '-0', '0', '0.1', '0.3', '5e-324', '1e308', '1e15'],
  },
  {
    type: 'numeric',
    oid: typeOids.numeric,
    random: `round(${signed}::numeric * 10::numeric ^ (g % 40 - 10), g % 25)`,
    corners: [
      'NaN',
      'Infinity',
      '-Infinity',
      '0',
      '0.00',
      '1.0',
      '1.00',
      '1.00000000000000000000',
      '-0.50000000000000000000',
      '-0.5',
      '-0.50',
      '0.0001',
      '-0.0001',
      '9999',
      '10000',
      '999999999999999',
      '1000000000000000',
      '1000000000000000.5',
      '0.123456789012345',
      '0.1234567890123456',
      '-1234567890.000000000001',
      '-1234567890.0000000000001',
      '1e40',
      '1e-40',
      '-1e40',
    ],
  },
  {
    type: 'text',
    oid: typeOids.text,
    random: `coalesce(${letters}, '')`,
    corners: ['', ' ', 'a', 'A', 'aaaaaa', 'aaaaaaa', 'aaaaaab', 'aaaaaaa '],
  },
  {
    type: 'varchar',
    oid: typeOids.varchar,
    random: `coalesce(${letters}, '')::varchar`,
    corners: ['', 'é', 'z'],
  },
  {
    type: 'char(12)',
    oid: typeOids.bpchar,
    random: `coalesce(${letters}, '')::char(12)`,
    corners: ['', 'a', 'a  ', 'a b', ' a'],
  },
  {
    type: 'name',
    oid: typeOids.name,
    random: `left(md5(random()::text), g % 9)::name`,
    corners: ['', 'Z', 'a', '_'],
  },
  {
    type: '"char"',
    oid: typeOids.char,
    random: `(floor(random() * 256)::int - 128)::"char"`,
    corners: ['', 'a', 'Z', '\\200', '\\377'],
  },
  {
    type: 'bytea',
    oid: typeOids.bytea,
    random: `substr(sha256(random()::text::bytea), 1, g % 9)`,
    corners: ['', '\\x00', '\\x0000', '\\xff', '\\x616263646566', '\\x61626364656600', '\\xA0'],
  },
  {
    type: 'uuid',
    oid: typeOids.uuid,
    random: `gen_random_uuid()`,
    corners: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  },
  {
    type: 'date',
    oid: typeOids.date,
    random: `date '2000-01-01' + (${signed} * 900000)::int`,
    corners: [
      'infinity',
      '-infinity',
      '0044-03-15 BC',
      '0001-12-31 BC',
      '0001-01-01',
      '4714-11-24 BC',
      '5874897-12-31',
      '12024-02-29',
      '9999-12-31',
    ],
  },
  {
    type: 'time',
    oid: typeOids.time,
    random: `time '00:00' + random() * interval '24 hours'`,
    corners: ['00:00:00', '24:00:00', '23:59:59.999999', '12:00:00.1', '12:00:00.09', '12:00:00'],
  },
  {
    type: 'timetz',
    oid: typeOids.timetz,
    random: `((time '00:00' + random() * interval '24 hours')::text || (ARRAY['+00', '-03:30', '+05:45', '-08', '+14', '+00:30:15'])[1 + g % 6])::timetz`,
    corners: ['00:00+15:59', '24:00-15:59', '12:00+00', '13:00+01', '14:00+02', '11:00:00.5-01'],
  },
  {
    type: 'timestamp',
    oid: typeOids.timestamp,
    random: `timestamp '2000-01-01' + ${signed} * 700000 * interval '1 day'`,
    corners: [
      'infinity',
      '-infinity',
      '294276-12-31 23:59:59.999999',
      '4714-11-24 00:00:00 BC',
      '0001-12-31 23:59:59.5 BC',
      '0001-01-01 00:00:00',
      '2024-02-29 12:00:00',
      '2024-02-29 12:00:00.000001',
    ],
  },
  {
    type: 'timestamptz',
    oid: typeOids.timestamptz,
    random: `timestamptz '1900-01-01 00:00+00' + ${signed} * 1000000 * interval '1 hour'`,
    corners: [
      'infinity',
      '-infinity',
      '294276-12-31 23:59:59.999999+00',
      '4714-11-24 00:00:00+00 BC',
      '0001-01-01 00:00:00+00',
      '2024-03-31 00:59:59.9+00',
      '2024-03-31 01:00:00+00',
      '2024-10-27 00:30:00+00',
      '2024-10-27 01:30:00+00',
      '1800-06-01 00:00:00.25+00',
    ],
  },
  {
    type: 'interval',
    oid: typeOids.interval,
    random: `make_interval(months => (${signed} * 40)::int, days => (${signed} * 900)::int, secs => ${signed} * 10 ^ (g % 9))`,
    corners: [
      '0',
      '1 month',
      '30 days',
      '720 hours',
      '1 mon -30 days',
      '-1 year 12 mons',
      '1 day',
      '24:00:00',
      '23:59:59.999999',
      '-00:00:00.000001',
      '1 year 2 mons 3 days 04:05:06.7',
      '-1 year -2 mons +3 days -04:05:06',
      '178000000 years',
      '2562047788:00:54.775807',
      '-2562047788:00:54.775807',
    ],
  },
  {
    type: 'inet',
    oid: typeOids.inet,
    random: `set_masklen('10.0.0.0'::inet + floor(random() * 100000)::int8, 20 + g % 13)`,
    corners: [
      '0.0.0.0/0',
      '10.1.2.3',
      '10.1.2.3/8',
      '10.0.0.0/8',
      '10.255.0.0/8',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:1.2.3.4',
      '2001:db8::/32',
      '2001:db8::1/32',
      '2001:db8:0:1:2:3:4:5',
      'fe80::1:0:0:1',
      '1::',
    ],
  },
  {
    type: 'cidr',
    oid: typeOids.cidr,
    random: `network(set_masklen('10.0.0.0'::inet + floor(random() * 100000)::int8, 16 + g % 17))`,
    corners: ['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/9', '::/0', '2001:db8::/32'],
  },
  {
    type: 'macaddr',
    oid: typeOids.macaddr,
    random: `substr(md5(random()::text), 1, 12)::macaddr`,
    corners: ['00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff'],
  },
  {
    type: 'macaddr8',
    oid: typeOids.macaddr8,
    random: `substr(md5(random()::text), 1, 16)::macaddr8`,
    corners: ['00:00:00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff'],
  },
  {
    type: 'varbit',
    oid: typeOids.varbit,
    random: `substring((random() * 65535)::int::bit(16) FOR g % 17)::varbit`,
    corners: ['', '0', '1', '10', '100', '1000000000', '10000000', '100000001'],
  },
  {
    type: 'bit(9)',
    oid: typeOids.bit,
    random: `(random() * 511)::int::bit(9)`,
    corners: ['000000000', '100000000', '100000001'],
  },
  {
    type: 'pg_lsn',
    oid: typeOids.pgLsn,
    random: `'0/0'::pg_lsn + floor(random() * 1e15)::numeric`,
    corners: ['0/0', 'FFFFFFFF/FFFFFFFF', '1/0', '0/FFFFFFFF', '10/0'],
  },
]

/** money is compared in binary form only. */
export const moneySample: Sample = {
  type: 'money',
  oid: typeOids.money,
  random: `(${signed} * 1e9)::int8::money`,
  corners: ['0', '-92233720368547758.08', '92233720368547758.07'],
}

/** All values of a sample, as one SELECT with the column `v`. */
export const valuesOf = ({ type, random, corners }: Sample): string =>
  [`SELECT (${random})::${type} AS v FROM generate_series(1, 60) g`]
    .concat(corners.map((corner) => `SELECT '${corner}'::${type}`))
    .join(' UNION ALL ')
