import { createHash } from 'node:crypto'
import { chmod, chown, mkdir, rm, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Binaries } from '../programs/binaries.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import type { EngineProgram } from '../programs/program.ts'
import { CONFINEMENTS } from '../confinement/launchers.ts'
import { writeDurably } from './durable-files.ts'
import { hasCode } from '../../../../shared/errors.ts'

/** Files of one server. Only Mooring can write to them, except `data` and `log`. */
export interface ServerPaths {
  /** Directory of mode 0700: no other user, the engine's included, can traverse it. */
  readonly root: string
  /** Data directory, owned by the engine's user. The engine inherits it as a descriptor, since it cannot traverse `root`. */
  readonly data: string
  /** Data directory under construction: left over when no process works on it. */
  readonly unfinished: string
  readonly config: string
  readonly log: string
  /** Output of the engine before it writes its own log. */
  readonly early: string
  readonly record: string
  /** File that reserves disk space (reserve.ts). */
  readonly reserve: string
  /** Empty directory on which a server's view of the file system is mounted. */
  readonly view: string
}

/** Files of the server with this uid, in the directory of all servers. */
export function serverPaths(directory: string, uid: string): ServerPaths {
  const root = join(directory, uid)
  return {
    root,
    data: join(root, 'data'),
    unfinished: join(root, 'data.new'),
    config: join(root, 'config'),
    log: join(root, 'log'),
    early: join(root, 'early.log'),
    record: join(root, 'process.json'),
    reserve: join(root, 'reserve'),
    view: join(root, 'view'),
  }
}

/** Directory of blanks, beside those of the servers, which are named by their uids. */
export const blanksIn = (directory: string): string => join(directory, '.blank')

interface BlankOf {
  readonly binaries: Binaries
  readonly program: EngineProgram
  /** Name of the admin in the blank. */
  readonly admin: string
}

/** Files of a blank, with the layout of a server: new servers of the version are copied from `data` (blank.ts). */
export function blankPaths(directory: string, { binaries, program, admin }: BlankOf): ServerPaths {
  const how = createHash('sha256').update(JSON.stringify(program.initialise(admin)))
  return serverPaths(blanksIn(directory), `${binaries.id}-${binaries.version}-${how.digest('hex').slice(0, 8)}`)
}

/** Creates all missing directories, except the data directory. */
export async function makeDirectories(paths: ServerPaths, user: EngineUser): Promise<void> {
  await mkdir(paths.root, { recursive: true, mode: 0o700 })
  await mkdir(paths.config, { recursive: true })
  await chmod(paths.config, 0o755)
  await mkdir(paths.view, { recursive: true })
  await makeOwned(paths.log, user)
}

/** Creates a directory that belongs to the engine's user. */
async function makeOwned(path: string, user: EngineUser): Promise<void> {
  await mkdir(path, { recursive: true })
  await chmod(path, 0o700)
  await chown(path, user.uid, user.gid)
}

/** Creates an empty directory that belongs to the engine's user, replacing an existing one. */
export async function makeEmpty(path: string, user: EngineUser): Promise<void> {
  // Retried: a program of a killed process may keep writing for a moment.
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  await makeOwned(path, user)
}

const Record = z.object({
  /** Id of the binaries. */
  binaries: z.string(),
  version: z.string(),
  /** Version of the server that made the data; absent in records of older versions, in which `version` stands for it. */
  made: z.string().max(64).optional(),
  listen: z.string(),
  port: z.int().min(1).max(65_535),
  /** Port for the administrator alone; absent where the server has none, and in records of older versions. */
  adminPort: z.int().min(1).max(65_535).optional(),
  /** Confinement and user id of the server; absent in records of older versions. */
  confinement: z.enum(CONFINEMENTS).optional(),
  uid: z.int().min(1).optional(),
  /** Key of the size whose settings the server was started with (operator/engines/size.ts). */
  size: z.string().max(64).optional(),
  /** Process started last; absent during a start. */
  process: z.object({ pid: z.int().min(2), startTime: z.string().regex(/^\d+$/) }).optional(),
})

/** Content of `process.json`: how a server was started. With it the port stays, and the process is found after a crash. */
export type Record = z.output<typeof Record>

/** Returns the version of the server that made the data of a record. */
export const madeBy = ({ made, version }: Record): string => made ?? version

/** Reads a record; undefined when the file is missing or invalid. */
export async function readRecord(paths: ServerPaths): Promise<Record | undefined> {
  try {
    return Record.safeParse(JSON.parse(await readFile(paths.record, 'utf8'))).data
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR') || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Replaces the record atomically. */
export async function writeRecord(paths: ServerPaths, record: Record): Promise<void> {
  await writeDurably(paths.record, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
}

/** Reads the records of all servers below `directory`, by uid. */
export async function readRecords(directory: string): Promise<ReadonlyMap<string, Record>> {
  const uids = await readdir(directory).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  const records = await Promise.all(uids.map(async (uid) => [uid, await readRecord(serverPaths(directory, uid))] as const))
  return new Map(records.flatMap(([uid, record]) => (record ? [[uid, record]] : [])))
}

/** Ports of all servers below `directory` but one, which is given by its uid. */
export async function portsOfOthers(directory: string, uid: string): Promise<ReadonlySet<number>> {
  const records = await readRecords(directory)
  return new Set([...records].flatMap(([other, { port, adminPort = port }]) => (other === uid ? [] : [port, adminPort])))
}
