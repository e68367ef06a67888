import { describe, expect, test } from 'vitest'
import { dumpSchema } from '../../../src/reshard/schema/dump-schema.js'
import { usePostgres } from '../../support/use-postgres.js'

describe.each([15, 18] as const)('PostgreSQL %i', (version) => {
  const postgres = usePostgres({ version })

  test('the pg_dump in npm reads a live server: types, tables, keys, functions longer than a buffer', async () => {
    const [server] = postgres().servers
    const body = `-- ${'long '.repeat(20_000)}`
    await postgres().query(`CREATE TYPE mood AS ENUM ('a', 'b');
      CREATE TABLE "T 1" (id bigint PRIMARY KEY, m mood, t text DEFAULT 'é');
      CREATE TABLE u (id bigint PRIMARY KEY REFERENCES "T 1");
      CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 ${body}\n $$`)
    const target = {
      host: server!.host,
      port: server!.port,
      user: postgres().user,
      database: postgres().database,
    }
    const dump = await dumpSchema(target, {
      sourceMajor: version,
      targetMajor: version,
      program: null,
    })
    expect(dump.by).toBe('pg_dump 18 of npm')
    expect(dump.before).toContain(`CREATE TYPE public.mood AS ENUM`)
    expect(dump.before).toContain(`DEFAULT 'é'`)
    expect(dump.before).toContain('long '.repeat(20_000))
    expect(dump.before).not.toMatch(/^\\/m)
    expect(/transaction_timeout/.test(dump.before)).toBe(version >= 17)
    expect(dump.after.map(({ type, name }) => `${type} ${name}`)).toEqual([
      'CONSTRAINT T 1 T 1_pkey',
      'CONSTRAINT u u_pkey',
      'FK CONSTRAINT u u_id_fkey',
    ])
  }, 60_000)

  test('a server that cannot be reached is one clear error', async () => {
    const target = { host: '127.0.0.1', port: 1, user: 'x', database: 'x' }
    await expect(
      dumpSchema(target, { sourceMajor: version, targetMajor: version, program: null }),
    ).rejects.toMatchObject({ code: 'CONNECT_FAILED', exitCode: 4 })
  })
})
