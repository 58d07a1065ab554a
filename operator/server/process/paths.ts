import { chmod, chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineUser } from './engine-user.ts'

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
  }
}

/** Makes what is missing but the data. */
export async function makeDirectories(paths: ServerPaths, user: EngineUser): Promise<void> {
  await mkdir(paths.root, { recursive: true, mode: 0o700 })
  await mkdir(paths.config, { recursive: true })
  await chmod(paths.config, 0o755)
  await makeOwned(paths.log, user)
}

/** Makes a directory that belongs to the engine. */
export async function makeOwned(path: string, user: EngineUser): Promise<void> {
  await mkdir(path, { recursive: true })
  await chmod(path, 0o700)
  await chown(path, user.uid, user.gid)
}
