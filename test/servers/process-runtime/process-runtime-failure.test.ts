import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  readRecord,
  serverPaths,
  type Record as ServerRecord,
  writeRecord,
} from '../../../operator/server/process/files/paths.ts'
import { credentials, databaseServer, reach, runtimeIn, scratch } from '../../support/operator/process-runtime.ts'

describe('the runtime reports why it cannot', () => {
  test('run a motor whose exact version is not installed', async () => {
    await using at = await scratch()
    const exact = await runtimeIn(at.directory, { compatibleMotors: 'exact' })
    expect([...(await exact.motors())]).toEqual([['postgresql-15.4.0', { version: '15.4.0' }]])
    expect(await exact.ensure(databaseServer('mysql-8.0.29'), credentials)).toEqual({
      phase: 'failed',
      reason: 'MotorUnavailable',
      message: 'mysql-8.0.29 is served only by version 8.0.15, with npm start -- --compatible-motors',
    })
    const nearest = await runtimeIn(at.directory)
    expect((await nearest.motors()).get('postgresql-14.4.0')).toEqual({ version: '14.5.0' })
  })

  test('log in as the administrator with another password than the server has', async () => {
    await using at = await scratch()
    const server = databaseServer()
    await reach(await runtimeIn(at.directory), server, 'running')
    const state = await reach(await runtimeIn(at.directory), server, 'failed', 'another')
    expect(state).toEqual({ phase: 'failed', reason: 'Crashed', message: "it rejects the admin's login (28P01)" })
  })

  test('start a server of another series than the one that made its data', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const runOnce = async (change: Partial<ServerRecord>, phase: 'running' | 'failed') => {
      const record = await readRecord(paths)
      if (record) await writeRecord(paths, { ...record, ...change })
      const runtime = await runtimeIn(at.directory)
      const state = await reach(runtime, server, phase)
      await runtime.close()
      return { state, made: (await readRecord(paths))?.made }
    }
    expect((await runOnce({}, 'running')).made).toBe('15.4.0')
    expect((await runOnce({ made: '14.5.0' }, 'failed')).state).toMatchObject({
      reason: 'MotorUnavailable',
      message: expect.stringContaining('made by PostgreSQL 14.5.0, and the server offered now is PostgreSQL 15.4.0') as string,
    })
    // Data of a version before this record.
    expect((await runOnce({ made: undefined, version: '15.1' }, 'running')).made).toBe('15.1')
  })

  test('start a server, with the last output of the engine', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const first = await runtimeIn(at.directory)
    await reach(first, server, 'running')
    await first.close()
    await writeFile(join(paths.data, 'PG_VERSION'), '9\n')
    const { message } = await reach(await runtimeIn(at.directory), server, 'failed')
    expect(message).toContain('database files are incompatible')
  })
})
