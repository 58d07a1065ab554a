import { once } from 'node:events'
import { mkdtempDisposable, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive } from '../../operator/server/process/spawn/proc.ts'
import { engineProcesses, isInitialising, mainProcesses } from '../support/deployment/data-directory.ts'
import { startMooring, freePorts, PORTS, type MooringRun, runMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { patient } from '../support/patience.ts'

const LOOK = { interval: 5, timeout: patient(20_000) }

const sentence = (about: RegExp) => expect.stringMatching(new RegExp(`^mooring: .*${about.source}.*\\n$`)) as string

test('a second start on a data directory or a used port exits with a message and does not disturb the first', async () => {
  await using first = await startMooring()
  const { port } = new URL(first.ready.sharedUrl)
  const second = runMooring(['--data-dir', first.dataDir, ...freePorts(...PORTS)])
  expect(await second.ended).toEqual({
    code: 3,
    stdout: '',
    stderr: sentence(/is in use by another process; stop that one, or choose another --data-dir/),
  })

  await using other = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
  const dataDir = join(other.path, 'data')
  for (const name of ['shared', 'dedicated-http', 'metrics']) {
    const others = freePorts(...PORTS.filter((other) => other !== name))
    const { ended } = runMooring(['--data-dir', dataDir, `--${name}-port`, port, ...others])
    expect(await ended).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(`mooring: port ${port} `) as string })
    expect((await ended).stderr).toContain(`choose another with --${name}-port`)
    expect(await engineProcesses(dataDir)).toEqual([])
  }

  expect((await first.call('GET', '/v1/instances')).status).toBe(200)
  expect(await mainProcesses(first.dataDir)).toHaveLength(1)
})

test.each([
  { args: ['--shared-port', 'http'], about: /--shared-port/ },
  { args: ['--warm-pool=-1'], about: /--warm-pool/ },
  { args: ['--colour'], about: /--colour/ },
])('$args make the start exit with a message', async ({ args, about }) => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
  const { ended } = runMooring(['--data-dir', join(temporary.path, 'data'), ...args])
  expect(await ended).toEqual({ code: 2, stdout: '', stderr: sentence(about) })
  expect(await readdir(temporary.path)).toEqual([])
})

test('an engine survives kill -9 of Mooring and is adopted; a stop ends it', async () => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
  const dataDir = temporary.path
  const first = await startMooring({ dataDir })
  const instanceBody = { identifier: 'kept', region: first.ready.region, motor: 'postgresql-15.4.0' }
  const { instance } = (await first.call('POST', '/v1/instances', { body: instanceBody })).body.data
  const engines = await mainProcesses(dataDir)
  expect(engines).toHaveLength(1)
  first.process.kill('SIGKILL')
  await once(first.process, 'exit')

  await using second = await startMooring({ dataDir })
  expect(await mainProcesses(dataDir)).toEqual(engines)
  expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])

  const ended = once(second.process, 'exit')
  second.process.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(await engineProcesses(dataDir)).toEqual([])
})

test('an interrupted first start leaves no process after SIGTERM, and the next start repairs it after SIGKILL', async () => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
  const dataDir = temporary.path
  async function startHalf(): Promise<MooringRun> {
    const run = runMooring(['--data-dir', dataDir, ...freePorts(...PORTS)])
    await expect.poll(() => isInitialising(dataDir), LOOK).toBe(true)
    return run
  }

  const stopped = await startHalf()
  stopped.process.kill('SIGTERM')
  expect(await stopped.ended).toMatchObject({ code: 0, stdout: '' })
  expect(await engineProcesses(dataDir)).toEqual([])

  const killed = await startHalf()
  killed.process.kill('SIGKILL')
  await killed.ended
  const left = await engineProcesses(dataDir)

  await using mooring = await startMooring({ dataDir })
  expect(await mainProcesses(dataDir)).toHaveLength(1)
  expect(await Promise.all(left.map(isAlive))).not.toContain(true)
  const instanceBody = { identifier: 'first', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  expect((await mooring.call('POST', '/v1/instances', { body: instanceBody })).status).toBe(201)
})
