/** Knex, Drizzle, Sequelize and TypeORM: schema, rows, relations, transactions and what they do with errors, as direct. */

import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core'
import knex from 'knex'
import pg from 'pg'
import { DataTypes, Sequelize } from 'sequelize'
import { DataSource, EntitySchema } from 'typeorm'
import { describe, expect, it } from 'vitest'
import { type Target, useDriverRig } from './driver-rig.js'

const codeOf = (error: unknown) => {
  const { code, parent } = error as { code?: string; parent?: { code?: string } }
  return code ?? parent?.code
}

async function knexWork(target: Target) {
  const db = knex({ client: 'pg', connection: target.url, pool: { min: 0, max: 5 } })
  await db.schema.createTable('knex_user', (table) => {
    table.increments('id')
    table.string('name').unique()
    table.jsonb('data')
  })
  const ids = await db('knex_user')
    .insert([{ name: 'a', data: { n: 1 } }, { name: 'b' }])
    .returning('id')
  const found = await Promise.all(
    Array.from({ length: 20 }, () => db('knex_user').where('name', 'a').first()),
  )
  const undone = await db
    .transaction(async (outer) => {
      await outer('knex_user').update({ name: 'c' }).where({ id: 1 })
      await outer
        .transaction(async (inner) => inner('knex_user').insert({ name: 'b' }))
        .catch(() => undefined)
      await outer('knex_user').insert({ name: 'b' })
    })
    .catch(codeOf)
  const upserted = await db('knex_user')
    .insert({ name: 'b', data: { n: 2 } })
    .onConflict('name')
    .merge()
    .returning('*')
  const streamed: unknown[] = []
  await db('knex_user')
    .orderBy('id')
    .then((rows) => streamed.push(...rows))
  const columns = Object.keys(await db('knex_user').columnInfo())
  await db.schema.dropTable('knex_user')
  await db.destroy()
  return { ids, found, undone, upserted, streamed, columns }
}

async function drizzleWork(target: Target) {
  const user = pgTable('drizzle_user', { id: serial().primaryKey(), name: text(), n: integer() })
  const pool = new pg.Pool({ connectionString: target.url, max: 5 })
  const db = drizzle({ client: pool })
  await db.execute(sql`create table drizzle_user (id serial primary key, name text unique, n int)`)
  const rows = await db
    .insert(user)
    .values([{ name: 'a', n: 1 }, { name: 'b' }])
    .returning()
  const byName = db
    .select()
    .from(user)
    .where(eq(user.name, sql.placeholder('name')))
    .prepare('by_name')
  const found = await Promise.all(
    Array.from({ length: 20 }, (_, n) => byName.execute({ name: n % 2 === 0 ? 'a' : 'b' })),
  )
  const undone = await db
    .transaction(
      async (outer) => {
        await outer.update(user).set({ n: 5 }).where(eq(user.name, 'a'))
        await outer
          .transaction(async (inner) => {
            await inner.insert(user).values({ name: 'c' })
            inner.rollback()
          })
          .catch(() => undefined)
        await outer.insert(user).values({ name: 'd' })
        return outer.select().from(user).orderBy(user.id)
      },
      { isolationLevel: 'serializable' },
    )
    .catch(codeOf)
  await pool.query('drop table drizzle_user')
  await pool.end()
  return { rows, found, undone }
}

async function sequelizeWork(target: Target) {
  const db = new Sequelize(target.url, { logging: false, pool: { max: 5 } })
  const author = db.define(
    'seq_author',
    { name: { type: DataTypes.STRING, unique: true } },
    { timestamps: false },
  )
  const book = db.define(
    'seq_book',
    { title: DataTypes.STRING, price: DataTypes.DECIMAL(8, 2) },
    { timestamps: false },
  )
  author.hasMany(book, { as: 'books' })
  await db.sync({ force: true })
  const one = await author.create({ name: 'a' })
  await book.bulkCreate(
    Array.from({ length: 30 }, (_, n) => ({
      title: `t ${n}`,
      price: n,
      seqAuthorId: one.get('id'),
    })),
  )
  const joined = await author.findAll({
    include: [{ model: book, as: 'books' }],
    order: [[{ model: book, as: 'books' }, 'id', 'ASC']],
  })
  const undone = await db
    .transaction(async (transaction) => {
      await author.update({ name: 'b' }, { where: { id: 1 }, transaction })
      await author.create({ name: 'b' }, { transaction })
    })
    .catch(codeOf)
  const [made, isNew] = await author.findOrCreate({ where: { name: 'c' } })
  const page = await book.findAndCountAll({ limit: 5, offset: 10, order: ['id'] })
  await db.drop()
  await db.close()
  return {
    joined: joined.map((found) => found.toJSON()),
    ...{ undone, isNew, made: made.toJSON(), count: page.count },
    page: page.rows.map((found) => found.toJSON()),
  }
}

interface Animal {
  id?: number
  name: string
  legs: number
}

async function typeormWork(target: Target) {
  const animals = new EntitySchema<Animal>({
    name: 'typeorm_animal',
    columns: {
      id: { type: Number, primary: true, generated: true },
      name: { type: String, unique: true },
      legs: { type: Number },
    },
  })
  const source = new DataSource({
    type: 'postgres',
    url: target.url,
    entities: [animals],
    installExtensions: false,
  })
  await source.initialize()
  await source.synchronize(true)
  const repository = source.getRepository(animals)
  const saved = await repository.save([
    { name: 'ant', legs: 6 },
    { name: 'cow', legs: 4 },
  ])
  const found = await Promise.all(
    Array.from({ length: 20 }, () => repository.findOneBy({ name: 'ant' })),
  )
  const undone = await source
    .transaction(async (manager) => {
      await manager.update(animals, { name: 'ant' }, { legs: 8 })
      await manager.transaction((inner) => inner.insert(animals, { name: 'eel', legs: 0 }))
      await manager.insert(animals, { name: 'cow', legs: 4 })
    })
    .catch(codeOf)
  const sums = await repository.createQueryBuilder('a').select('sum(a.legs)', 'legs').getRawOne()
  await repository.upsert({ name: 'cow', legs: 5 }, ['name'])
  const all = await repository.find({ order: { id: 'ASC' } })
  await source.dropDatabase()
  await source.destroy()
  return { saved, found, undone, sums, all }
}

describe('object mappers', () => {
  const rig = useDriverRig()

  it('Knex does its usual work', async () => {
    const done = await rig().same(knexWork)
    expect(done.undone).toBe('23505')
  })

  it('Drizzle does its usual work', async () => {
    const done = await rig().same(drizzleWork)
    expect(done.undone).toHaveLength(3)
  })

  it('Sequelize does its usual work', async () => {
    const done = await rig().same(sequelizeWork)
    expect(done).toMatchObject({ isNew: true, undone: '23505', count: 30 })
  })

  it('TypeORM does its usual work', async () => {
    const done = await rig().same(typeormWork)
    expect(done).toMatchObject({ undone: '23505', sums: { legs: '10' } })
  })
})
