import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { serverPaths, type ServerPaths } from './paths.ts'
import { holdersOf, isAlive, processOf, type ProcessId } from './proc.ts'
import {
  ask,
  connect,
  credentials,
  databaseServer,
  dropTemplate,
  makeCertificate,
  makeTemplate,
  preparedServer,
  reach,
  runtimeIn,
  scratch,
} from './process-fixture.ts'
import { readRecord, type Record, writeRecord } from './record.ts'

beforeAll(makeTemplate)
afterAll(dropTemplate)

const isRoot = process.getuid?.() === 0

async function recordOf(paths: ServerPaths): Promise<Record & { process: ProcessId }> {
  const record = await readRecord(paths)
  if (!record?.process) throw new Error('no process is recorded')
  return { ...record, process: record.process }
}

describe.each([
  { motor: 'postgresql-15.4.0', version: '15.4' },
  { motor: 'postgresql-14.4.0', version: '14.5' },
] as const)('a server of $motor', ({ motor, version }) => {
  test('starts, takes the admin in over TCP, and is not root', async () => {
    await using at = await scratch()
    const server = databaseServer(motor)
    const runtime = await runtimeIn(at.directory)
    expect(await runtime.ensure(server, credentials)).toEqual({ phase: 'starting' })
    const { host, port, admin } = await reach(runtime, server, 'running')
    expect({ host, admin }).toEqual({ host: '127.0.0.1', admin: { host: '127.0.0.1', port } })

    await using session = await connect(port)
    expect(await ask(session, 'SHOW server_version')).toBe(version)
    const encoding = 'SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = current_database()'
    expect((await session.query(encoding)).rows).toEqual([{ pg_encoding_to_char: 'UTF8', datcollate: 'C.UTF-8' }])
    const { process } = await recordOf(serverPaths(at.directory, server.metadata.uid))
    const uids = /^Uid:\t(\d+)\t(\d+)/m.exec(await readFile(`/proc/${process.pid}/status`, 'utf8'))
    expect([uids?.[1], uids?.[2]]).not.toContain('0')
  })

  test('is adopted by the next runtime, and its sessions live on', async () => {
    await using at = await scratch()
    const server = databaseServer(motor)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const { port } = await reach(await runtimeIn(at.directory), server, 'running')
    const { process } = await recordOf(paths)
    await using session = await connect(port)

    const next = await runtimeIn(at.directory)
    expect(await reach(next, server, 'running')).toMatchObject({ port })
    expect((await recordOf(paths)).process).toEqual(process)
    expect(await ask(session, 'SELECT 1')).toBe(1)
  })

  test('is failed when its main process is killed, and starts again with its port and data', async () => {
    await using at = await scratch()
    const server = databaseServer(motor)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const runtime = await runtimeIn(at.directory)
    const { port } = await reach(runtime, server, 'running')
    {
      await using session = await connect(port)
      await session.query('CREATE TABLE kept (n int)')
    }
    const { process: first } = await recordOf(paths)
    process.kill(first.pid, 'SIGKILL')
    expect(await reach(runtime, server, 'failed')).toMatchObject({ reason: 'Crashed' })

    expect(await reach(runtime, server, 'running')).toMatchObject({ port })
    expect((await recordOf(paths)).process).not.toEqual(first)
    await using session = await connect(port)
    expect(await ask(session, 'SELECT count(*)::int FROM kept')).toBe(0)
  })

  test('leaves no process and no directory when it is removed, sessions or not', async () => {
    await using at = await scratch()
    const server = databaseServer(motor)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const runtime = await runtimeIn(at.directory)
    const { port } = await reach(runtime, server, 'running')
    await using session = await connect(port)
    expect(await ask(session, 'SELECT 1')).toBe(1)
    const holders = await holdersOf(paths.data)
    expect(holders.length).toBeGreaterThan(1)

    expect(await runtime.remove(server)).toBe(true)
    expect(await Promise.all(holders.map(isAlive))).not.toContain(true)
    await expect(access(paths.root)).rejects.toThrow('ENOENT')
    expect(await runtime.remove(server)).toBe(true)
  })
})

describe('after a crash of ours', () => {
  /** Runs a process of its own that starts the server. */
  function startElsewhere(directory: string, uid: string): ReturnType<typeof spawn> {
    const program = new URL('orphan-fixture.ts', import.meta.url).pathname
    return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, directory, uid], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
  }

  test('a server survives the kill of the process that started it, and is adopted', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
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

  test('a data directory that was only half made is made anew', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const paths = serverPaths(at.directory, server.metadata.uid)
    const starter = startElsewhere(at.directory, server.metadata.uid)
    await vi.waitFor(() => access(join(paths.unfinished, 'PG_VERSION')), { timeout: 10_000, interval: 5 })
    starter.kill('SIGKILL')
    await once(starter, 'exit')

    const { port } = await reach(await runtimeIn(at.directory), server, 'running')
    await using session = await connect(port)
    expect(await ask(session, 'SELECT 1')).toBe(1)
    await expect(access(paths.unfinished)).rejects.toThrow('ENOENT')
  })

  test('a server that was started but not yet recorded is adopted', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const { port } = await reach(await runtimeIn(at.directory), server, 'running')
    const { process: started, ...unfinished } = await recordOf(paths)
    await writeRecord(paths, unfinished)

    expect(await reach(await runtimeIn(at.directory), server, 'running')).toMatchObject({ port })
    expect((await recordOf(paths)).process).toEqual(started)
  })

  test.each(['its own start time', 'another start time'])(
    'a stranger with the recorded pid and %s is left alone',
    async (whose) => {
      await using at = await scratch()
      const server = await preparedServer(at.directory)
      const paths = serverPaths(at.directory, server.metadata.uid)
      const stranger = spawn('sleep', ['60'])
      const found = await processOf(stranger.pid ?? 0)
      const startTime = whose === 'its own start time' ? (found?.startTime ?? '') : '1'
      const record = { package: 'postgresql-15', version: '15.4.0', listen: '127.0.0.1', port: 20_001 }
      await writeRecord(paths, { ...record, process: { pid: stranger.pid ?? 0, startTime } })

      const runtime = await runtimeIn(at.directory)
      await reach(runtime, server, 'running')
      expect((await recordOf(paths)).process.pid).not.toBe(stranger.pid)
      await runtime.remove(server)
      expect(await processOf(stranger.pid ?? 0)).toEqual(found)
      stranger.kill('SIGKILL')
    },
  )
})

test('two runtimes that start one server at once share one process', async () => {
  await using at = await scratch()
  const server = await preparedServer(at.directory)
  const runtimes = await Promise.all([runtimeIn(at.directory), runtimeIn(at.directory)])
  const [one, two] = await Promise.all(runtimes.map((runtime) => reach(runtime, server, 'running')))
  expect(one).toEqual(two)
})

test('a server keeps its port over a restart, and gives it up when somebody else has it', async () => {
  await using at = await scratch()
  const server = await preparedServer(at.directory)
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

test('close ends sessions in good order, and servers that a former process left too', async () => {
  await using at = await scratch()
  const server = await preparedServer(at.directory)
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

test('close gets rid of a server that does not react to signals', async () => {
  await using at = await scratch()
  const server = await preparedServer(at.directory)
  const paths = serverPaths(at.directory, server.metadata.uid)
  const runtime = await runtimeIn(at.directory)
  await reach(runtime, server, 'running')
  process.kill((await recordOf(paths)).process.pid, 'SIGSTOP')
  await runtime.close()
  expect(await holdersOf(paths.data)).toEqual([])
})

test('close while a data directory is being made leaves nothing running', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const runtime = await runtimeIn(at.directory)
  await runtime.ensure(server, credentials)
  await vi.waitFor(async () => expect(await holdersOf(paths.unfinished)).not.toEqual([]), { timeout: 10_000, interval: 5 })
  await runtime.close()
  await vi.waitFor(async () => expect(await holdersOf(paths.unfinished)).toEqual([]), { timeout: 5000, interval: 5 })
  await expect(access(paths.data)).rejects.toThrow('ENOENT')
})

describe('off the usual loopback address', () => {
  test('TLS works with the given CA, and the admin is given it', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
    const certificate = await makeCertificate()
    const runtime = await runtimeIn(at.directory, { certificate: () => certificate })
    const { port } = await reach(runtime, server, 'running')
    await using session = await connect(port, { ssl: { ca: certificate.ca } })
    expect(await ask(session, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toBe(true)
    const { ca } = await makeCertificate()
    await expect(connect(port, { ssl: { ca } })).rejects.toThrow()
  })

  test('a server that listened elsewhere is moved', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
    await reach(await runtimeIn(at.directory), server, 'running')
    const { host, port } = await reach(await runtimeIn(at.directory, { listen: '127.0.0.2' }), server, 'running')
    expect(host).toBe('127.0.0.2')
    await using session = await connect(port, { host })
    expect(await ask(session, 'SELECT 1')).toBe(1)
  })
})

describe('says why it cannot', () => {
  test('serve a motor whose exact version is not there', async () => {
    await using at = await scratch()
    const exact = await runtimeIn(at.directory, { compatibleMotors: 'exact' })
    expect([...(await exact.motors())]).toEqual([['postgresql-15.4.0', { version: '15.4.0' }]])
    expect(await exact.ensure(databaseServer('postgresql-14.4.0'), credentials)).toMatchObject({ reason: 'MotorUnavailable' })
    const nearest = await runtimeIn(at.directory)
    expect((await nearest.motors()).get('postgresql-14.4.0')).toEqual({ version: '14.5.0' })
  })

  test('take the admin in, when the password is not the one the data was made with', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
    await reach(await runtimeIn(at.directory), server, 'running')
    const state = await reach(await runtimeIn(at.directory), server, 'failed', 'another')
    expect(state).toEqual({ phase: 'failed', reason: 'Crashed', message: "it refuses the admin's login (28P01)" })
  })

  test('start, with the last words of the engine', async () => {
    await using at = await scratch()
    const server = await preparedServer(at.directory)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const first = await runtimeIn(at.directory)
    await reach(first, server, 'running')
    await first.close()
    await writeFile(join(paths.data, 'PG_VERSION'), '9\n')
    const { message } = await reach(await runtimeIn(at.directory), server, 'failed')
    expect(message).toContain('database files are incompatible')
  })
})

test('the directory is closed to others, and the admin password is in no file beside the data', async () => {
  await using at = await scratch()
  const server = await preparedServer(at.directory)
  const paths = serverPaths(at.directory, server.metadata.uid)
  await reach(await runtimeIn(at.directory), server, 'running')
  const { stdout } = spawn('find', [at.directory, '-name', 'data', '-prune', '-o', '-printf', '%P %m %U\n'])
  const listing = (await stdout.setEncoding('utf8').toArray()).join('')
  const engine = isRoot ? 65_534 : process.getuid?.()
  expect(listing).toContain(`${server.metadata.uid} 700 ${process.getuid?.()}\n`)
  expect(listing).toContain(`config/server.key 600 ${engine}\n`)
  expect(listing).not.toContain('password')
  for (const file of [paths.early, paths.record]) expect(await readFile(file, 'utf8')).not.toContain(credentials.password)
})
