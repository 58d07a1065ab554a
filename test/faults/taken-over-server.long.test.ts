import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, recordOf } from '../support/operator/process-runtime.ts'
import { serverPaths } from '../../operator/server/process/files/paths.ts'
import { isAlive } from '../../operator/server/process/spawn/proc.ts'
import type { ServerState } from '../../operator/server/runtime.ts'

// A tenant who controls a database server can run programs there. These tests do the same with COPY … FROM PROGRAM.

const run = promisify(execFile)
const NOBODY = 65_534
type Running = Extract<ServerState, { phase: 'running' }>

/** Creates a data directory and mounts the checkout, both accessible to a user other than root. */
async function stage(uid: number) {
  const root = await mkdtemp(join(tmpdir(), 'mooring-confined-'))
  await chmod(root, 0o755)
  const [checkout, home] = [join(root, 'checkout'), join(root, 'home')]
  await mkdir(checkout)
  await run('mount', ['--bind', resolve('.'), checkout])
  await mkdir(join(home, 'servers'), { recursive: true, mode: 0o700 })
  await writeFile(join(home, 'token'), 'the token of the administrator', { mode: 0o600 })
  for (const path of [home, join(home, 'servers'), join(home, 'token')]) await chown(path, uid, uid)
  return {
    ...{ checkout, home, servers: join(home, 'servers') },
    async [Symbol.asyncDispose]() {
      await run('umount', [checkout])
      await rm(root, { recursive: true })
    },
  }
}

interface Started {
  readonly states: readonly Running[]
  readonly warnings: readonly string[]
  /** Kills the process with SIGKILL, like a crash of Mooring. */
  kill(): Promise<void>
  stop(): Promise<void>
}

describe.each([
  { kind: 'users', uid: 0 },
  { kind: 'namespaces', uid: NOBODY },
  { kind: 'landlock', uid: NOBODY },
])('a compromised server, confined by $kind,', ({ kind, uid }) => {
  const [victim, broken] = [randomUUID(), randomUUID()]
  let at: Awaited<ReturnType<typeof stage>>
  let started: Started

  async function start(): Promise<Started> {
    const program = join(at.checkout, 'test/support/postgresql/unprivileged-runtime.ts')
    const child = spawn(process.execPath, [program, at.servers, kind, victim, broken], {
      ...{ uid, gid: uid, cwd: at.checkout, stdio: ['ignore', 'pipe', 'inherit'] },
    })
    const exited = once(child, 'exit')
    const line = (await Promise.race([once(createInterface(child.stdout), 'line'), exited])) as unknown[]
    const { states, warnings } = JSON.parse(String(line[0])) as Pick<Started, 'states' | 'warnings'>
    const end = async (signal: NodeJS.Signals): Promise<void> => {
      child.kill(signal)
      await exited
    }
    return { states, warnings, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') }
  }

  /** Runs a command on the compromised server and returns its output. */
  async function inBroken(command: string): Promise<string> {
    await using client = await connect(started.states[1]?.port ?? 0)
    await client.query('CREATE TEMP TABLE output (line text)')
    const program = `( ${command} ) 2>&1 || true`
    await client.query(`COPY output FROM PROGRAM '${program.replaceAll("'", "''")}' WITH (DELIMITER E'\\x01')`)
    const { rows } = await client.query<{ line: string }>('SELECT line FROM output')
    return rows.map(({ line }) => line).join('\n')
  }

  async function lastLog(): Promise<string> {
    const { log } = serverPaths(at.servers, broken)
    return readFile(join(log, (await readdir(log)).toSorted().at(-1) ?? ''), 'utf8')
  }

  beforeAll(async () => {
    at = await stage(uid)
    started = await start()
    // The victim's data directory also holds the rows of a tenant.
    await writeFile(join(serverPaths(at.servers, victim).data, 'row'), 'rows of another organization', { mode: 0o644 })
  })

  afterAll(async () => {
    await started.stop()
    await at[Symbol.asyncDispose]()
  })

  test('reads its own files', async () => {
    expect(await inBroken('cat /proc/self/fd/3/PG_VERSION')).toBe('15')
    expect(started.warnings).toEqual([])
  })

  test('cannot read the token, by its path or through its own directory', async () => {
    const secret = 'the token of the administrator'
    expect(await inBroken(`cat ${at.home}/token`)).not.toContain(secret)
    expect(await inBroken('cat /proc/self/fd/3/../../../token')).not.toContain(secret)
    expect(await inBroken('cat /proc/self/fd/4/../../../token; cat /proc/self/fd/5/../../../token')).not.toContain(secret)
    expect(await inBroken('cat /proc/1/root/token; cat /proc/self/cwd/../token')).not.toContain(secret)
  })

  test("cannot read another server's data, by its path or through file descriptors of other processes", async () => {
    const rows = 'rows of another organization'
    const { data, config } = serverPaths(at.servers, victim)
    expect(await inBroken(`cat ${data}/row ${data}/global/pg_control`)).not.toContain(rows)
    expect(await inBroken(`cat /proc/self/fd/3/../../${victim}/data/row`)).not.toContain(rows)
    expect(await inBroken('cat /proc/[0-9]*/fd/*/row')).not.toContain(rows)
    expect(await inBroken('cat /proc/[0-9]*/cwd/row /proc/[0-9]*/root/row')).not.toContain(rows)
    expect(await inBroken(`cat ${config}/server.key; cat /proc/[0-9]*/fd/4/server.key | sort -u | wc -l`)).not.toContain(
      await readFile(join(config, 'server.key'), 'utf8'),
    )
  })

  test('cannot read memory or environment of other servers and of Mooring', async () => {
    const { process: main } = await recordOf(serverPaths(at.servers, victim))
    const open = await inBroken(
      `for f in environ maps fd/3/PG_VERSION; do cat /proc/${main.pid}/$f >/dev/null && echo open; done`,
    )
    expect(open.split('\n')).not.toContain('open')
    expect(await inBroken(`cat /proc/${process.pid}/environ >/dev/null && echo open`)).not.toBe('open')
  })

  test('cannot kill other processes', async () => {
    const { process: main } = await recordOf(serverPaths(at.servers, victim))
    await inBroken(`kill -9 ${main.pid}; kill -9 ${process.pid}`)
    expect(await isAlive(main)).toBe(true)
  })

  test('cannot change the programs or its configuration, or create files elsewhere', async () => {
    const installation = join(at.checkout, 'node_modules/postgresql-15/native/bin/evil')
    const elsewhere = [installation, '/proc/self/fd/4/evil', `${at.home}/evil`, '/etc/evil', '/usr/evil']
    await inBroken(elsewhere.map((path) => `touch ${path}`).join('; '))
    for (const path of elsewhere.filter((path) => !path.startsWith('/proc'))) {
      await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    }
    expect(await readdir(serverPaths(at.servers, broken).config)).not.toContain('evil')
  })

  test('cannot read shared memory of another server', async () => {
    const segment = `/dev/shm/PostgreSQL.${randomUUID()}`
    await writeFile(segment, 'rows of another organization', { mode: 0o600 })
    const { uid: owner } = await stat(serverPaths(at.servers, victim).data)
    await chown(segment, owner, owner)
    expect(await inBroken(`cat ${segment}`)).not.toContain('rows of another organization')
    await rm(segment)
  })

  test('gains no privileges through setuid programs', async () => {
    expect(await inBroken('id -u')).not.toBe('0')
    expect(await inBroken('su -c id </dev/null; sudo -n id')).not.toContain('uid=0')
  })

  test('is adopted after a crash of Mooring, reloads its configuration, and stops cleanly', async () => {
    const before = await recordOf(serverPaths(at.servers, broken))
    await started.kill()
    started = await start()
    const after = await recordOf(serverPaths(at.servers, broken))
    expect(after).toEqual(before)
    expect(started.states[1]?.port).toBe(before.port)
    await started.stop()
    expect(await isAlive(before.process)).toBe(false)
    expect(await lastLog()).toContain('received SIGHUP')
    started = await start()
    expect(await lastLog()).toContain('database system was shut down at')
    expect(await inBroken('cat /proc/self/fd/3/PG_VERSION')).toBe('15')
  })
})

test('a warning names the risk and the remedy when nothing can confine servers', async () => {
  await using at = await stage(NOBODY)
  const program = join(at.checkout, 'test/support/postgresql/unprivileged-runtime.ts')
  const child = spawn(process.execPath, [program, at.servers, 'none', randomUUID()], {
    ...{ uid: NOBODY, gid: NOBODY, cwd: at.checkout, stdio: ['ignore', 'pipe', 'inherit'] },
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const { warnings } = JSON.parse(line) as Started
  expect(warnings.join()).toContain('can read all files of this user')
  expect(warnings.join()).toContain('Start as root, or allow unprivileged user namespaces')
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
})
