/** Prisma without a query engine, on the adapter for node-postgres: its usual work, directly and through serve. */
import { PrismaPg } from '@prisma/adapter-pg'
import { describe, expect, it } from 'vitest'
import { PrismaClient } from '../../../fixtures/drivers/prisma/client.js'
import { type Target, useDriverRig } from './driver-rig.js'

const SCHEMA = [
  `create type "State" as enum ('open', 'paid')`,
  `create table "Customer" (id serial primary key, email text not null unique, name text not null, data jsonb,
    raw bytea, born timestamptz(6), score numeric(12,4), tags text[] not null default '{}')`,
  `create table "Order" (id bigserial primary key, "customerId" int not null references "Customer" on delete cascade,
    total numeric(12,2) not null, state "State" not null default 'open')`,
]

const codeOf = (error: unknown) => (error as { code?: string }).code

/** Decimals, dates and big numbers as text, so that runs can be compared. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, one) => (typeof one === 'bigint' ? `${one}n` : (one as unknown))),
  )

async function prismaWork(target: Target) {
  const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: target.url, max: 5 }) })
  try {
    for (const statement of SCHEMA) await db.$executeRawUnsafe(statement)
    const ada = await db.customer.create({
      data: {
        email: 'ada@example.org',
        name: 'Ada',
        data: { n: [1, null, 'x'] },
        raw: Buffer.from([0, 255, 10]),
        born: new Date('1815-12-10T01:02:03.456Z'),
        score: '12345678.1234',
        tags: ['a', 'b"c'],
        orders: { create: [{ total: '1.50' }, { total: '2.25', state: 'paid' }] },
      },
      include: { orders: true },
    })
    const many = await db.customer.createMany({
      data: Array.from({ length: 50 }, (_, n) => ({
        email: `${n}@example.org`,
        name: `N${n % 5}`,
      })),
    })
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        db.customer.findUnique({ where: { email: `${n}@example.org` } }),
      ),
    )
    const pages = await db.customer.findMany({
      where: { OR: [{ name: 'N1' }, { name: { contains: 'da' } }] },
      orderBy: [{ name: 'asc' }, { id: 'desc' }],
      take: 7,
      skip: 2,
      include: { orders: { orderBy: { id: 'asc' } } },
    })
    const double = await db.customer
      .create({ data: { email: 'ada@example.org', name: 'x' } })
      .catch(codeOf)
    const batch = await db.$transaction([
      db.customer.update({ where: { email: '1@example.org' }, data: { name: 'batch' } }),
      db.order.createMany({ data: [{ customerId: 2, total: '9.99' }] }),
    ])
    const undone = await db
      .$transaction(async (tables) => {
        await tables.customer.update({ where: { email: '2@example.org' }, data: { name: 'gone' } })
        await tables.customer.create({ data: { email: '3@example.org', name: 'double' } })
      })
      .catch(codeOf)
    const kept = await db.$transaction(
      async (tables) => {
        const { count } = await tables.customer.updateMany({
          where: { name: 'N2' },
          data: { name: 'N2!' },
        })
        const [row] =
          await tables.$queryRaw`select count(*)::int as n from "Customer" where name = ${'N2!'}`
        return { count, row }
      },
      { isolationLevel: 'Serializable' },
    )
    const upserted = await db.customer.upsert({
      where: { email: 'new@example.org' },
      create: { email: 'new@example.org', name: 'new' },
      update: { name: 'old' },
    })
    const sums = await db.order.aggregate({
      _sum: { total: true },
      _count: true,
      _max: { id: true },
    })
    const groups = await db.customer.groupBy({
      by: ['name'],
      _count: { _all: true },
      orderBy: { name: 'asc' },
    })
    const deleted = await db.customer.deleteMany({ where: { email: 'ada@example.org' } })
    const left = await db.order.findMany({ orderBy: { id: 'asc' } })
    return plain({
      ada,
      many,
      found,
      pages,
      double,
      batch,
      undone,
      kept,
      upserted,
      sums,
      groups,
      deleted,
      left,
    })
  } finally {
    await db.$disconnect()
  }
}

describe('Prisma without an engine', () => {
  const rig = useDriverRig()

  it('does its usual work', async () => {
    const done = await rig().same(prismaWork)
    expect(done).toMatchObject({
      double: 'P2002',
      undone: 'P2002',
      many: { count: 50 },
      kept: { count: 10, row: { n: 10 } },
    })
  })
})
