import { once } from 'node:events'
import { access } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { holdersOf, isAlive } from '../../../operator/server/process/spawn/proc.ts'
import {
  ask,
  bareScratch,
  recordOf,
  connect,
  credentials,
  databaseServer,
  reach,
  runtimeIn,
  scratch,
} from '../../support/operator/process-runtime.ts'
import { patient } from '../../support/patience.ts'

test('a server keeps its port over a restart unless another process uses it', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const first = await runtimeIn(at.directory)
  const { port } = await reach(first, server, 'running')
  const { process } = await recordOf(paths)
  await first.close()
  expect(await isAlive(process)).toBe(false)
  expect(await first.ensure(server, credentials)).toEqual({ phase: 'absent' })

  const second = await runtimeIn(at.directory)
  expect(await reach(second, server, 'running')).toMatchObject({ port })
  await second.close()

  await using other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  const third = await reach(await runtimeIn(at.directory), server, 'running')
  expect(third.port).not.toBe(port)
  await using session = await connect(third.port)
  expect(await ask(session, 'SELECT 1')).toBe(1)
})

test('close shuts servers down cleanly, including servers that another runtime started', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const { port } = await reach(await runtimeIn(at.directory), server, 'running')
  await using session = await connect(port)
  const ended = once(session, 'error')
  const stopper = await runtimeIn(at.directory)
  await stopper.close()
  expect(await holdersOf(paths.data)).toEqual([])
  expect(await ended).toMatchObject([{ code: '57P01' }])
  await expect(access(join(paths.data, 'postmaster.pid'))).rejects.toThrow('ENOENT')
})

test('close kills a server that ignores signals', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const runtime = await runtimeIn(at.directory)
  await reach(runtime, server, 'running')
  process.kill((await recordOf(paths)).process.pid, 'SIGSTOP')
  await runtime.close()
  expect(await holdersOf(paths.data)).toEqual([])
})

test('close during the creation of a data directory leaves no process', async () => {
  await using at = await bareScratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const runtime = await runtimeIn(at.directory)
  await runtime.ensure(server, credentials)
  await vi.waitFor(async () => expect(await holdersOf(paths.unfinished)).not.toEqual([]), {
    timeout: patient(10_000),
    interval: 5,
  })
  await runtime.close()
  await vi.waitFor(async () => expect(await holdersOf(paths.unfinished)).toEqual([]), { timeout: patient(10_000), interval: 5 })
  await expect(access(paths.data)).rejects.toThrow('ENOENT')
})
