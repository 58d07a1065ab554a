import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { connect } from '../../../operator/engines/postgresql/connection.ts'
import { createCatalogGuard } from '../../../operator/engines/postgresql/shared-catalogs.ts'
import { createWatchdog } from '../../../operator/engines/postgresql/watchdog.ts'

const UNLIMITED = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
const MIB = 1_048_576

/** Returns a statement that writes 2 MiB into the role's own settings. PostgreSQL does not compress repetitions at such a distance. */
const LONG_SETTING = (name: string): string =>
  `DO $$ BEGIN EXECUTE format('ALTER ROLE ${name} SET application_name = %L', repeat('${randomBytes(32_768).toString('hex')}', 32)); END $$`

describe.each(SERIES)('PostgreSQL %s: shared catalogs', (series) => {
  const bench = postgresqlBench(series)

  /** Returns the size of the shared catalogs whose names match a pattern of LIKE. */
  const bytesOf = async (pattern: string): Promise<number> => {
    const root = await bench.server.client()
    const { rows } = await root.query<{ bytes: number }>(
      `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class WHERE relisshared AND relkind = 'r' AND relname LIKE $1`,
      [pattern],
    )
    await root.end()
    return rows[0]?.bytes ?? 0
  }
  const sharedBytes = () => bytesOf('%')

  test('shrink after a tenant enlarged them, and the tenant cannot log in until its password is restored', async () => {
    const [mallory, neighbour] = [await bench.tenant('mallory'), await bench.tenant('neighbour')]
    const [client, open] = [await bench.as(mallory), await bench.as(neighbour)]
    await open.query(`ALTER ROLE neighbour SET work_mem = '8MB'`)
    while ((await sharedBytes()) < 8 * MIB) await client.query(LONG_SETTING('mallory'))
    const writing = (async (): Promise<void> => {
      for (;;) await client.query(LONG_SETTING('mallory'))
    })().catch((error: unknown) => error)
    await using connection = connect(bench.server.target)
    expect(await createWatchdog(connection)(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    const enforce = createWatchdog(connection, { totalBytes: 8 * MIB })
    expect(await enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 1, suspended: [{ name: 'mallory', cause: 'catalogs' }] })
    expect(await writing).toBeDefined()
    expect(await sharedBytes()).toBeLessThan(2 * MIB)
    await expect(bench.as(mallory)).rejects.toMatchObject({ code: '28P01' })
    expect(await bench.admin.findChangedPasswords([mallory, neighbour])).toEqual(['mallory'])
    await bench.admin.setPassword(mallory)
    await (await bench.as(mallory)).end()
    expect((await open.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect((await (await bench.as(neighbour)).query('SHOW work_mem')).rows).toEqual([{ work_mem: '8MB' }])
  })

  const attacks: readonly (readonly [string, string, (client: pg.Client, name: string) => Promise<unknown>])[] = [
    ['open', 'in an open transaction', (client, name) => client.query(`BEGIN; ALTER ROLE ${name} PASSWORD 'x'`)],
    [
      'busy',
      'repeatedly',
      (client, name) =>
        client.query(
          `DO $$ BEGIN LOOP ALTER ROLE ${name} SET work_mem = '8MB'; COMMIT; PERFORM pg_sleep(0.01); END LOOP; END $$`,
        ),
    ],
  ]

  test.each(attacks)('above the bound end the sessions of the tenant "%s" that writes to them %s', async (name, _, attack) => {
    await using connection = connect(bench.server.target)
    const [client, quiet] = [await bench.as(await bench.tenant(name)), await bench.as(await bench.tenant(`quiet${name}`))]
    await quiet.query(`ALTER ROLE quiet${name} SET work_mem = '8MB'`)
    const attacking = attack(client, name).catch(() => undefined)
    if (name === 'open') await attacking
    expect(await createCatalogGuard(connection, { totalBytes: 0 })()).toEqual([{ name, cause: 'catalogs' }])
    await attacking
    await expect(client.query('SELECT 1')).rejects.toThrow()
    expect((await quiet.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  test('stay below their bound while a tenant grants itself its database again and again', async () => {
    const [mallory, neighbour] = [await bench.tenant('granting'), await bench.tenant('migrating')]
    const [client, open] = [await bench.as(mallory), await bench.as(neighbour)]
    await open.query('BEGIN; CREATE TABLE t (n int)')
    const granting = client
      .query('DO $$ BEGIN LOOP GRANT CONNECT ON DATABASE granting TO granting; COMMIT; END LOOP; END $$')
      .catch((error: unknown) => error)
    await expect.poll(() => bytesOf('pg_database')).toBeGreaterThan(MIB / 2)
    const { ended } = await bench.admin.enforce(UNLIMITED)
    expect(ended).toBe(1)
    expect(await granting).toBeDefined()
    await expect(bench.as(mallory)).rejects.toMatchObject({ code: '28P01' })
    await open.query('COMMIT')
    // Vacuum has freed the space within the file: what is written now does not enlarge it, and nobody is suspected.
    const before = await bytesOf('pg_database')
    await bench.admin.setPassword(mallory)
    await (await bench.as(mallory)).query('GRANT CONNECT ON DATABASE granting TO granting')
    expect(await bytesOf('pg_database')).toBe(before)
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
  })
})
