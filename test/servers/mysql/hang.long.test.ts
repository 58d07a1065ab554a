import mysql from 'mysql2/promise'
import { expect, test } from 'vitest'
import { mysqlAdmin } from '../../../operator/engines/mysql/mysql.ts'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { credentials, databaseServer, reach, recordOf, runtimeIn, scratch } from '../../support/operator/process-runtime.ts'
import { patient } from '../../support/patience.ts'

/** A login on a loaded machine may take longer than its limit, but not several in turn. */
const HANG_CHECK = { everyMs: 100, failures: 5 }

test('a server that hangs is killed and started again', { timeout: patient(240_000) }, async () => {
  await using at = await scratch()
  const server = databaseServer('mariadb-10.7.4')
  const runtime = await runtimeIn(at.directory, { hangCheck: HANG_CHECK })
  await reach(runtime, server, 'running')
  const { process: before } = await recordOf(serverPaths(at.directory, server.metadata.uid))
  process.kill(before.pid, 'SIGSTOP')
  await reach(runtime, server, 'failed')
  const { admin } = await reach(runtime, server, 'running')
  await using engine = mysqlAdmin({ ...admin, ...credentials }, 'mariadb')
  expect((await engine.catalog()).leftovers).toEqual([])
})

test(
  'a restart kills a server whose shutdown waits for an expression, and starts it again',
  { timeout: patient(240_000) },
  async () => {
    await using at = await scratch()
    const server = databaseServer('mariadb-10.7.4')
    const runtime = await runtimeIn(at.directory)
    const { admin } = await reach(runtime, server, 'running')
    const { host, port } = admin
    const client = await mysql.createConnection({ host, port, ...credentials })
    client.on('error', () => undefined)
    const stubborn = client.query("SELECT LOCATE(CONCAT(REPEAT('a', 1900000), 'b'), REPEAT('a', 4000000))").catch(() => 'ended')
    await using engine = mysqlAdmin({ ...admin, ...credentials }, 'mariadb')
    await engine.version()
    await runtime.restart(server)
    expect(await stubborn).toBe('ended')
    await reach(runtime, server, 'running')
    expect((await engine.catalog()).leftovers).toEqual([])
  },
)
