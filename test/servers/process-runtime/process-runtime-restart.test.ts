import { once } from 'node:events'
import { expect, test } from 'vitest'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { isAlive } from '../../../operator/server/process/spawn/proc.ts'
import { loop } from '../../support/postgresql/stuck.ts'
import {
  ask,
  connect,
  credentials,
  databaseServer,
  reach,
  recordOf,
  runtimeIn,
  scratch,
} from '../../support/operator/process-runtime.ts'

test('restart ends a server with a statement that nothing ends, and starts it again on its port with its data', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const runtime = await runtimeIn(at.directory)
  await runtime.restart(server)
  const { port } = await reach(runtime, server, 'running')
  const { process } = await recordOf(paths)
  await using session = await connect(port)
  await using looping = await connect(port)
  await session.query('CREATE TABLE kept AS SELECT 1 AS n')
  await loop(looping)
  const ended = once(session, 'error')
  await runtime.restart(server)
  expect(await isAlive(process)).toBe(false)
  expect(await ended).toMatchObject([{ code: '57P01' }])
  expect(await reach(runtime, server, 'running')).toMatchObject({ port })
  expect((await recordOf(paths)).process.pid).not.toBe(process.pid)
  await using again = await connect(port)
  expect(await ask(again, 'SELECT n FROM kept')).toBe(1)
  expect(await runtime.ensure(server, credentials)).toMatchObject({ phase: 'running' })
  await runtime.close()
})
