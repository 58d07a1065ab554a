import { spawn } from 'node:child_process'
import { access, lstat, readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { holdersOf, isAlive } from '../../../operator/server/process/spawn/proc.ts'
import {
  ask,
  bareScratch,
  recordOf,
  connect,
  credentials,
  databaseServer,
  makeCertificate,
  reach,
  runtimeIn,
  scratch,
} from '../../support/operator/process-runtime.ts'

const isRoot = process.getuid?.() === 0

describe.each([
  { motor: 'postgresql-15.4.0', version: '15.4' },
  { motor: 'postgresql-14.4.0', version: '14.5' },
] as const)('a server of $motor', ({ motor, version }) => {
  test('starts, accepts the administrator’s login over TCP, and does not run as root', async () => {
    await using at = await bareScratch()
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

  test('is adopted by the next runtime, and its sessions continue', async () => {
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

  test('is reported as failed when its main process is killed, and starts again with its port and data', async () => {
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

  test('leaves no process and no directory when it is removed with open sessions', async () => {
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

test('two runtimes that start one server concurrently share one process', async () => {
  await using at = await scratch()
  const server = databaseServer()
  const runtimes = await Promise.all([runtimeIn(at.directory), runtimeIn(at.directory)])
  const [one, two] = await Promise.all(runtimes.map((runtime) => reach(runtime, server, 'running')))
  expect(one).toEqual(two)
})

describe('on another address than 127.0.0.1', () => {
  test('the server’s certificate verifies against the given CA and no other', async () => {
    await using at = await scratch()
    const server = databaseServer()
    const certificate = await makeCertificate()
    const runtime = await runtimeIn(at.directory, { certificate: () => certificate })
    const { port } = await reach(runtime, server, 'running')
    await using session = await connect(port, { ssl: { ca: certificate.ca } })
    expect(await ask(session, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toBe(true)
    const { ca } = await makeCertificate()
    await expect(connect(port, { ssl: { ca } })).rejects.toThrow()
  })

  test('a server that listened on another address is restarted', async () => {
    await using at = await scratch()
    const server = databaseServer()
    await reach(await runtimeIn(at.directory), server, 'running')
    const { host, port } = await reach(await runtimeIn(at.directory, { listen: '127.0.0.2' }), server, 'running')
    expect(host).toBe('127.0.0.2')
    await using session = await connect(port, { host })
    expect(await ask(session, 'SELECT 1')).toBe(1)
  })
})

test('the directory is closed to other users, and no file beside the data contains the administrator’s password', async () => {
  await using at = await bareScratch()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  await reach(await runtimeIn(at.directory), server, 'running')
  const { stdout } = spawn('find', [at.directory, '-name', 'data', '-prune', '-o', '-printf', '%P %m %U\n'])
  const listing = (await stdout.setEncoding('utf8').toArray()).join('')
  const engine = isRoot ? (await lstat(paths.data)).uid : process.getuid?.()
  if (isRoot) expect(engine).toBeGreaterThanOrEqual(20_000)
  expect(listing).toContain(`${server.metadata.uid} 700 ${process.getuid?.()}\n`)
  expect(listing).toContain(`config/server.key 600 ${engine}\n`)
  expect(listing).not.toContain('password')
  for (const file of [paths.early, paths.record]) expect(await readFile(file, 'utf8')).not.toContain(credentials.password)
})
