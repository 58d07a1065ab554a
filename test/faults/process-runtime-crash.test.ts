import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { serverPaths, writeRecord } from '../../operator/server/process/files/paths.ts'
import { processOf } from '../../operator/server/process/spawn/proc.ts'
import {
  ask,
  bareScratch,
  recordOf,
  connect,
  databaseServer,
  reach,
  runtimeIn,
  scratch,
} from '../support/operator/process-runtime.ts'
import { patient } from '../support/patience.ts'

describe('after a crash of Mooring', () => {
  /** Runs a separate process that starts the server. */
  function startElsewhere(directory: string, uid: string): ReturnType<typeof spawn> {
    const program = new URL('../support/operator/orphan-engine.ts', import.meta.url).pathname
    return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, directory, uid], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
  }

  test('a server survives the kill of the process that started it, and is adopted', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const starter = startElsewhere(at.directory, server.metadata.uid)
    if (starter.stdout) await once(starter.stdout, 'data')
    const before = await recordOf(paths)
    starter.kill('SIGKILL')
    await once(starter, 'exit')

    const runtime = await runtimeIn(at.directory)
    expect(await reach(runtime, server, 'running')).toMatchObject({ port: before.port })
    expect((await recordOf(paths)).process).toEqual(before.process)

    process.kill(before.process.pid, 'SIGKILL')
    expect(await reach(runtime, server, 'failed')).toMatchObject({ reason: 'Crashed' })
    await reach(runtime, server, 'running')
  })

  test('an unfinished data directory is replaced', async () => {
    await using at = await bareScratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const starter = startElsewhere(at.directory, server.metadata.uid)
    await vi.waitFor(() => access(join(paths.unfinished, 'PG_VERSION')), { timeout: patient(10_000), interval: 5 })
    starter.kill('SIGKILL')
    await once(starter, 'exit')

    const { port } = await reach(await runtimeIn(at.directory), server, 'running')
    await using session = await connect(port)
    expect(await ask(session, 'SELECT 1')).toBe(1)
    await expect(access(paths.unfinished)).rejects.toThrow('ENOENT')
  })

  test('a server that was started but not yet recorded is adopted', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const { port } = await reach(await runtimeIn(at.directory), server, 'running')
    const { process: started, ...unfinished } = await recordOf(paths)
    await writeRecord(paths, unfinished)

    expect(await reach(await runtimeIn(at.directory), server, 'running')).toMatchObject({ port })
    expect((await recordOf(paths)).process).toEqual(started)
  })

  test.each(['its own start time', 'another start time'])(
    'another process with the recorded pid and %s is not signalled',
    async (whose) => {
      await using at = await scratch()
      const server = databaseServer()
      const paths = serverPaths(at.directory, server.metadata.uid)
      const unrelated = spawn('sleep', ['60'])
      const found = await processOf(unrelated.pid ?? 0)
      const startTime = whose === 'its own start time' ? (found?.startTime ?? '') : '1'
      const record = { binaries: 'postgresql-15', version: '15.4.0', listen: '127.0.0.1', port: 20_001 }
      await mkdir(paths.root)
      await writeRecord(paths, { ...record, process: { pid: unrelated.pid ?? 0, startTime } })

      const runtime = await runtimeIn(at.directory)
      await reach(runtime, server, 'running')
      expect((await recordOf(paths)).process.pid).not.toBe(unrelated.pid)
      await runtime.remove(server)
      expect(await processOf(unrelated.pid ?? 0)).toEqual(found)
      unrelated.kill('SIGKILL')
    },
  )
})
