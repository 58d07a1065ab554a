import { createHash } from 'node:crypto'
import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Binaries } from '../programs/binaries.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import type { EngineProgram } from '../programs/program.ts'

/** Files of one server. All but `data` and `log` can be written by Mooring alone. */
export interface ServerPaths {
  /** 0700: no other user of the machine gets past it, the engine's included. */
  readonly root: string
  /** The engine's own; it reaches it as a file descriptor it inherits, since it cannot traverse `root`. */
  readonly data: string
  /** A data directory in the making: rubbish when nobody is at it. */
  readonly unfinished: string
  readonly config: string
  readonly log: string
  /** What the engine says before it logs by itself. */
  readonly early: string
  readonly record: string
  /** Takes room for bad times (reserve.ts). */
  readonly reserve: string
  /** An empty directory, to mount a server's view of the file system on. */
  readonly view: string
}

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

/** Beside the servers, each named by its uid, which no uid is. */
export const blanksIn = (directory: string): string => join(directory, '.blank')

interface BlankOf {
  readonly binaries: Binaries
  readonly program: EngineProgram
  /** Name of the admin in it. */
  readonly admin: string
}

/** Of a blank, which is laid out as a server is: `data` is what new servers of that version are copied from (blank.ts). */
export function blankPaths(directory: string, { binaries, program, admin }: BlankOf): ServerPaths {
  const how = createHash('sha256').update(JSON.stringify(program.initialise(admin)))
  return serverPaths(blanksIn(directory), `${binaries.package}-${binaries.version}-${how.digest('hex').slice(0, 8)}`)
}

/** Makes what is missing but the data. */
export async function makeDirectories(paths: ServerPaths, user: EngineUser): Promise<void> {
  await mkdir(paths.root, { recursive: true, mode: 0o700 })
  await mkdir(paths.config, { recursive: true })
  await chmod(paths.config, 0o755)
  await mkdir(paths.view, { recursive: true })
  await makeOwned(paths.log, user)
}

/** Makes a directory that belongs to the engine. */
export async function makeOwned(path: string, user: EngineUser): Promise<void> {
  await mkdir(path, { recursive: true })
  await chmod(path, 0o700)
  await chown(path, user.uid, user.gid)
}

/** The same, without whatever was there. */
export async function makeEmpty(path: string, user: EngineUser): Promise<void> {
  // Retried: a program of a process of ours that was killed may still be writing for a moment.
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  await makeOwned(path, user)
}
