import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { binariesFor } from '../../operator/server/process/programs/binaries.ts'
import { blankPaths, blanksIn, serverPaths, type ServerPaths } from '../../operator/server/process/files/paths.ts'
import { holdersOf } from '../../operator/server/process/spawn/proc.ts'
import {
  ask,
  connect,
  credentials,
  databaseServer,
  reach,
  runtimeIn,
  bareScratch,
  scratch,
  type Scratch,
} from '../support/operator/process-runtime.ts'
import { PROGRAMS } from '../../operator/server/process/programs/programs.ts'
import { SHARED_BLANKS } from '../support/postgresql/disks.ts'
import { patient } from '../support/patience.ts'

const MOTOR = 'postgresql-15.4.0'
const FIRST = 'password-of-the-first'
const SECOND = "another's_\\_password"
const WAITING = { timeout: patient(20_000), interval: 1 }

async function blankIn(directory: string, motor: Parameters<typeof binariesFor>[0] = MOTOR): Promise<ServerPaths> {
  const binaries = await binariesFor(motor, 'nearest')
  if (!binaries || !PROGRAMS.postgresql) throw new Error('no such engine here')
  return blankPaths(directory, { binaries, program: PROGRAMS.postgresql, admin: credentials.user })
}

/** Directory with a blank of its own, which tests may damage. */
async function scratchWithBlank(): Promise<Scratch> {
  const at = await bareScratch()
  await promisify(execFile)('cp', ['-a', SHARED_BLANKS, blanksIn(at.directory)])
  return at
}

beforeAll(async () => {
  await using at = await scratch()
  await reach(await runtimeIn(at.directory), databaseServer(MOTOR), 'running')
})

/** Logger that records its messages. */
function listener() {
  const heard: string[] = []
  const write = (line: string): void => void heard.push((JSON.parse(line) as { msg: string }).msg)
  return { heard, logger: pino({ level: 'warn' }, { write }) }
}

/** Separate process that starts a server. */
function startElsewhere(directory: string, uid: string): ReturnType<typeof spawn> {
  const program = new URL('../support/operator/orphan-engine.ts', import.meta.url).pathname
  return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, directory, uid], { stdio: 'ignore' })
}

async function end(child: ReturnType<typeof spawn>): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

describe.each(['postgresql-15.4.0', 'postgresql-14.4.0'] as const)('of %s', (motor) => {
  test('the first server leaves a blank, and the second is a copy with a password of its own', async () => {
    await using at = await bareScratch()
    const { heard, logger } = listener()
    const runtime = await runtimeIn(at.directory, { logger })
    const first = await reach(runtime, databaseServer(motor), 'running', FIRST)
    const blank = await blankIn(at.directory, motor)
    expect((await readdir(blank.root)).toSorted()).toEqual(['data', 'early.log', 'listing'])
    const { mode, uid } = await stat(blank.data)
    expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o700, uid: process.getuid?.() === 0 ? 65_534 : process.getuid?.() })

    const maps = (await readdir(join(blank.data, 'base'), { recursive: true })).filter((name) => /_(?:fsm|vm)$/.test(name))
    expect(maps).toEqual([])

    const server = databaseServer(motor)
    const { port } = await reach(runtime, server, 'running', SECOND)
    expect(heard).toEqual([])
    await expect(connect(port, { password: FIRST })).rejects.toMatchObject({ code: '28P01' })
    await expect(connect(first.port, { password: SECOND })).rejects.toMatchObject({ code: '28P01' })
    await using one = await connect(first.port, { password: FIRST })
    await using other = await connect(port, { password: SECOND })
    const system = 'SELECT system_identifier::text FROM pg_control_system()'
    expect(await ask(other, system)).toBe(await ask(one, system))
    expect(await ask(other, 'SELECT rolpassword FROM pg_authid WHERE rolname = current_user')).toMatch(/^SCRAM-SHA-256\$4096:/)

    const paths = serverPaths(at.directory, server.metadata.uid)
    expect((await readdir(paths.root)).toSorted()).toEqual([
      'config',
      'data',
      'early.log',
      'log',
      'process.json',
      'reserve',
      'view',
    ])
    for (const early of [paths.early, blank.early]) expect(await readFile(early, 'utf8')).not.toMatch(/password|SCRAM/)
  })
})

test.each([
  {
    damage: 'a file that is missing',
    doTo: ({ data }: ServerPaths) => rm(join(data, 'base', '1', 'PG_VERSION')),
  },
  {
    damage: 'a file that is cut short',
    doTo: ({ data }: ServerPaths) => truncate(join(data, 'global', 'pg_control'), 100),
  },
  {
    damage: 'another content',
    doTo: ({ data }: ServerPaths) => writeFile(join(data, 'global', 'pg_control'), Buffer.alloc(8192)),
  },
  {
    damage: 'no note of how much is in it',
    doTo: ({ root }: ServerPaths) => rm(join(root, 'listing')),
  },
])('a blank with $damage is replaced during the start that finds it', async ({ doTo }) => {
  await using at = await scratchWithBlank()
  const { heard, logger } = listener()
  const runtime = await runtimeIn(at.directory, { logger })
  const blank = await blankIn(at.directory)
  await doTo(blank)

  const { port } = await reach(runtime, databaseServer(), 'running', SECOND)
  await using session = await connect(port, { password: SECOND })
  expect(await ask(session, 'SELECT 1')).toBe(1)
  const warning = 'the copy of the blank data directory failed: data directory and blank are created anew'
  expect(heard).toEqual([warning])

  await reach(runtime, databaseServer(), 'running', FIRST)
  expect(heard).toEqual([warning])
})

test('a server whose start is killed in the middle of the copy is copied again', async () => {
  await using at = await scratchWithBlank()
  const server = databaseServer()
  const paths = serverPaths(at.directory, server.metadata.uid)
  const starter = startElsewhere(at.directory, server.metadata.uid)
  await vi.waitFor(async () => expect(await holdersOf(paths.unfinished)).not.toEqual([]), WAITING)
  await end(starter)
  await expect(access(paths.data)).rejects.toThrow('ENOENT')

  const { heard, logger } = listener()
  const { port } = await reach(await runtimeIn(at.directory, { logger }), server, 'running')
  await using session = await connect(port)
  expect(await ask(session, 'SELECT 1')).toBe(1)
  await expect(access(paths.unfinished)).rejects.toThrow('ENOENT')
  expect(heard).toEqual([])
})

test('a blank whose creation was killed is created by the next start, and its leftovers are removed', async () => {
  await using at = await bareScratch()
  const server = databaseServer()
  const blank = await blankIn(at.directory)
  const starter = startElsewhere(at.directory, server.metadata.uid)
  await vi.waitFor(() => access(join(blank.unfinished, 'global')), WAITING)
  await end(starter)
  await expect(access(blank.data)).rejects.toThrow('ENOENT')

  const { heard, logger } = listener()
  const runtime = await runtimeIn(at.directory, { logger })
  await reach(runtime, server, 'running')
  expect((await readdir(blank.root)).toSorted()).toEqual(['data', 'early.log', 'listing'])
  await reach(runtime, databaseServer(), 'running')
  expect(heard).toEqual([])
})

test('a server starts when its blank cannot be stored', async () => {
  await using at = await bareScratch()
  await writeFile(blanksIn(at.directory), 'in the way')
  const { heard, logger } = listener()
  const runtime = await runtimeIn(at.directory, { logger })
  await reach(runtime, databaseServer(), 'running')
  expect(heard).toContain('no blank data directory could be stored: the next server takes longer to create')
})

test('blanks of former versions of the package are removed', async () => {
  await using at = await bareScratch()
  const names = ['postgresql-15-15.3.0-00000000', 'postgresql-14-14.5.0-00000000']
  for (const name of names) await mkdir(join(blanksIn(at.directory), name, 'data'), { recursive: true })
  await reach(await runtimeIn(at.directory), databaseServer(), 'running')
  const left = await readdir(blanksIn(at.directory))
  expect(left).toHaveLength(2)
  expect(left).toContain(names[1])
})
