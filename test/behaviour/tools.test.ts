import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openHome } from '../support/home.ts'
import { query } from '../support/sql.ts'
import type { Tenant } from '../support/tenant.ts'

// The tools of a tenant, each in depth, are in operator/engines; here, that they work with a uri as the API hands it out.

const run = promisify(execFile)
const home = openHome()
let acme: Tenant
beforeAll(async () => {
  acme = await home.namespace()
})
afterAll(() => home[Symbol.asyncDispose]())

test('psql connects with the uri alone', async () => {
  const { uri, name } = await acme.instance()
  const { stdout } = await run('psql', ['-X', '-At', '-c', 'SELECT current_database()', uri])
  expect(stdout).toBe(`${name}\n`)
})

test('pg_dump of one instance goes into another by pg_restore', async () => {
  const [from, to] = [await acme.instance(), await acme.instance()]
  await query(
    from,
    `CREATE SCHEMA app; CREATE TABLE app.item AS SELECT g AS id, md5(g::text) AS name FROM generate_series(1, 500) g`,
  )
  const directory = await mkdtemp(join(tmpdir(), 'mooring-dump-'))
  try {
    const file = join(directory, 'dump')
    await run('pg_dump', ['-Fc', '--no-owner', '-f', file, from.uri])
    await run('pg_restore', ['--exit-on-error', '--no-owner', '-d', to.uri, file])
  } finally {
    await rm(directory, { recursive: true })
  }
  expect(await query(to, 'SELECT count(*)::int AS n FROM app.item')).toEqual([{ n: 500 }])
})

test('pgbench makes its tables and runs', async () => {
  const { uri } = await acme.instance()
  await run('pgbench', ['-i', '-q', uri])
  expect((await run('pgbench', ['-c', '2', '-t', '5', uri])).stdout).toContain('actually processed: 10/10')
})

test('schema public may be dropped and made anew', async () => {
  const instance = await acme.instance()
  await query(instance, 'CREATE TABLE t (n int)')
  await query(instance, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await query(instance, 'CREATE TABLE t (n int)')
  expect(await query(instance, 'SELECT * FROM t')).toEqual([])
})
