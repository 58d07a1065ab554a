import { execFile } from 'node:child_process'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDeployment } from '../support/deployment/deployment.ts'
import { usableUri } from '../support/families/usable-uri.ts'
import { query } from '../support/postgresql/sql.ts'
import type { Tenant } from '../support/api/tenant.ts'

// operator/engines tests each client tool in depth; these tests check that the tools work with the uri from the API.

const run = promisify(execFile)
const scratch = () => mkdtempDisposable(join(tmpdir(), 'mooring-tools-'))
const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

test('psql connects with the uri and verifies the server by the CA that the uri names', async () => {
  await using directory = await scratch()
  const instance = await acme.instance()
  const { stdout } = await run('psql', [
    '-X',
    '-At',
    '-c',
    'SELECT current_database()',
    await usableUri(instance, directory.path),
  ])
  expect(stdout).toBe(`${instance.name}\n`)
})

test('pg_restore loads the pg_dump of one instance into another', async () => {
  await using directory = await scratch()
  const [from, to] = [await acme.instance(), await acme.instance()]
  await query(
    from,
    `CREATE SCHEMA app; CREATE TABLE app.item AS SELECT g AS id, md5(g::text) AS name FROM generate_series(1, 500) g`,
  )
  const file = join(directory.path, 'dump')
  await run('pg_dump', ['-Fc', '--no-owner', '-f', file, await usableUri(from, directory.path)])
  await run('pg_restore', ['--exit-on-error', '--no-owner', '-d', await usableUri(to, directory.path), file])
  expect(await query(to, 'SELECT count(*)::int AS n FROM app.item')).toEqual([{ n: 500 }])
})

test('pgbench creates its tables and runs', async () => {
  await using directory = await scratch()
  const uri = await usableUri(await acme.instance(), directory.path)
  await run('pgbench', ['-i', '-q', uri])
  expect((await run('pgbench', ['-c', '2', '-t', '5', uri])).stdout).toContain('actually processed: 10/10')
})

test('a tenant drops and recreates schema public', async () => {
  const instance = await acme.instance()
  await query(instance, 'CREATE TABLE t (n int)')
  await query(instance, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await query(instance, 'CREATE TABLE t (n int)')
  expect(await query(instance, 'SELECT * FROM t')).toEqual([])
})
