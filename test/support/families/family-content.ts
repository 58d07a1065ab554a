import type { CollectionInfo, Db } from 'mongodb'
import { type Family, Motor, partsOf } from '../../../crds/motor.ts'
import type { Instance } from '../api/answers.ts'
import { query } from '../postgresql/sql.ts'
import { openMongodb, openMysql } from './family-client.ts'

/** Content of a database with more than rows: constraints, indexes, views, code. */
interface Content {
  /** Makes one of each. */
  readonly furnish: (instance: Instance) => Promise<void>
  /** Returns what {@link furnish} made, as plain data; equal for equal content. The name of the database is replaced by `db`. */
  readonly read: (instance: Instance) => Promise<unknown>
  /** Makes a write that the constraints of the content reject. */
  readonly violate: (instance: Instance) => Promise<unknown>
}

const TABLES = [
  'CREATE TABLE zone (id int PRIMARY KEY, name varchar(40) NOT NULL UNIQUE)',
  'CREATE TABLE item (id int PRIMARY KEY, zone int NOT NULL, price decimal(8,2), FOREIGN KEY (zone) REFERENCES zone (id))',
  'CREATE INDEX by_price ON item (price)',
  "INSERT INTO zone VALUES (1, 'Zoë'), (2, '山')",
  'INSERT INTO item VALUES (10, 1, 1.50), (11, 2, NULL)',
  'CREATE VIEW priced AS SELECT id, price FROM item WHERE price IS NOT NULL',
] as const
const ORPHAN = 'INSERT INTO item VALUES (12, 3, 0)'

const postgresql: Content = {
  async furnish(instance) {
    for (const statement of TABLES) await query(instance, statement)
    await query(
      instance,
      `CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';
       CREATE SEQUENCE s START 7; SELECT nextval('s')`,
    )
  },
  async read(instance) {
    const rows = async (sql: string) => query(instance, sql)
    return {
      zones: await rows('SELECT * FROM zone ORDER BY id'),
      items: await rows('SELECT * FROM item ORDER BY id'),
      view: await rows('SELECT * FROM priced'),
      indexes: await rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
      constraints: await rows(
        'SELECT pg_get_constraintdef(oid) AS rule FROM pg_constraint WHERE conrelid <> 0 AND connamespace = 2200 ORDER BY 1',
      ),
      code: await rows('SELECT twice(4) AS twice, (SELECT last_value FROM s) AS last'),
    }
  },
  violate: (instance) => query(instance, ORPHAN),
}

export async function mysqlRows(instance: Instance, ...statements: readonly string[]): Promise<readonly unknown[]> {
  const session = await openMysql(instance)
  try {
    const found: unknown[] = []
    for (const statement of statements) found.push((await session.query(statement))[0])
    return found
  } finally {
    await session.end()
  }
}

const mysql: Content = {
  async furnish(instance) {
    await mysqlRows(
      instance,
      ...TABLES,
      'CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN 2 * n',
      'CREATE TRIGGER free BEFORE UPDATE ON item FOR EACH ROW SET NEW.price = COALESCE(NEW.price, 0)',
      'CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DO DELETE FROM item WHERE price = 0',
    )
  },
  async read(instance) {
    const found = await mysqlRows(
      instance,
      ...['SELECT * FROM zone ORDER BY id', 'SELECT * FROM item ORDER BY id', 'SELECT * FROM priced', 'SELECT twice(4) AS n'],
      ...['SHOW CREATE TABLE zone', 'SHOW CREATE TABLE item', 'SHOW CREATE VIEW priced'],
      'SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() ORDER BY 1',
      'SELECT EVENT_NAME, EVENT_DEFINITION, STARTS, STATUS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()',
    )
    return JSON.parse(JSON.stringify(found).replaceAll(instance.name, 'db')) as unknown
  },
  violate: (instance) => mysqlRows(instance, ORPHAN),
}

async function inDatabase<T>(instance: Instance, use: (db: Db) => Promise<T>): Promise<T> {
  await using client = await openMongodb(instance)
  return await use(client.db(instance.name))
}

const mongodb: Content = {
  furnish: (instance) =>
    inDatabase(instance, async (db) => {
      const zones = await db.createCollection<{ _id: number; name: string }>('zone', { validator: { name: { $type: 'string' } } })
      await zones.createIndexes([{ key: { name: 1 }, unique: true, name: 'by_name' }])
      await zones.insertMany([
        { _id: 1, name: 'Zoë' },
        { _id: 2, name: '山' },
      ])
      const log = await db.createCollection<{ _id: number }>('log', { capped: true, size: 4096, max: 2 })
      await log.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }])
      await db.createCollection('first', { viewOn: 'zone', pipeline: [{ $match: { _id: 1 } }] })
    }),
  read: (instance) =>
    inDatabase(instance, async (db) => {
      const all = await db.listCollections<CollectionInfo>({}, { nameOnly: false }).toArray()
      const collections = all.map(({ name, type, options }) => ({ name, type, options: { ...options } }))
      const documents = async (name: string) => db.collection(name).find().sort({ _id: 1 }).toArray()
      return {
        collections: collections.filter(({ name }) => !name.startsWith('system.')).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
        zones: await documents('zone'),
        log: await documents('log'),
        first: await documents('first'),
        indexes: await db.collection('zone').indexes(),
      }
    }),
  violate: (instance) => inDatabase(instance, (db) => db.collection('zone').insertOne({ name: 7 })),
}

const CONTENTS: Readonly<Record<Family, Content>> = { postgresql, mysql, mariadb: mysql, mongodb }

/** Returns the content that tests make in databases of a motor. */
export const contentOf = (motor: string): Content => CONTENTS[partsOf(Motor.parse(motor)).family]
