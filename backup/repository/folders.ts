import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { hasCode } from '../../shared/errors.ts'
import { fileFailure, unlessCode } from './failures.ts'
import type { Gate } from './gate.ts'

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY
/** Attempts to find or make the directory of an object. */
const ATTEMPTS = 20

/**
 * Open directory of a repository. Each directory below the root is opened by its name in the descriptor of the one above, as openat(2) does, with
 * O_NOFOLLOW: a symbolic link that another program puts there is never followed, whenever it appears.
 */
export interface Folder {
  /** Path of a name in this directory, valid while the folder is open. */
  path(name: string): string
  /** Makes the names in this directory survive a power loss (fsync(2)). */
  sync(): Promise<void>
  close(): Promise<void>
}

/** Open folders from the root on, each of which has the next one. */
export type Path = readonly [Folder, ...Folder[]]

/** Finds directories of a repository. Folders are open while `use` runs. */
export interface Folders {
  /** Calls `use` in a directory. Returns undefined when the repository has no such directory. @throws MooringError when its root cannot be read */
  ifPresent<T>(parts: readonly string[], use: (path: Path) => Promise<T>): Promise<T | undefined>
  /**
   * Calls `use` in a directory, which is created (0700) when it is missing. When another caller removes the empty directory meanwhile, `use` is
   * called again, if `mayRepeat` allows it. @throws the system's error
   */
  made<T>(parts: readonly string[], use: (path: Path) => Promise<T>, mayRepeat: () => boolean): Promise<T>
}

/** Finds directories below `root`, which may be a symbolic link itself, and is not created. */
export function createFolders(root: string, gate: Gate): Folders {
  async function openFolder(path: string, flags: number): Promise<Folder> {
    const handle = await gate(() => open(path, flags), closeHandle)
    return {
      path: (name) => `/proc/self/fd/${handle.fd}/${name}`,
      // Some file systems cannot sync a directory (EINVAL), and make its names durable themselves or not at all.
      sync: () => gate(() => unlessCode(['EINVAL', 'ENOTSUP'], handle.sync())),
      close: () => gate(() => handle.close()),
    }
  }
  const below = (folder: Folder, name: string) => openFolder(folder.path(name), DIRECTORY | constants.O_NOFOLLOW)

  async function belowOrMade(folder: Folder, name: string): Promise<Folder> {
    try {
      return await below(folder, name)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await gate(() => unlessCode(['EEXIST'], mkdir(folder.path(name), { mode: 0o700 })))
    return below(folder, name)
  }

  async function within<T>(parts: readonly string[], step: typeof below, use: (path: Path) => Promise<T>): Promise<T> {
    const path: [Folder, ...Folder[]] = [await openFolder(root, DIRECTORY)]
    try {
      for (const part of parts) path.push(await step(lastOf(path), part))
      return await use(path)
    } finally {
      for (const folder of path) await folder.close()
    }
  }

  return {
    async ifPresent(parts, use) {
      try {
        return await within(parts, below, use)
      } catch (error) {
        if (!isMissing(error)) throw fileFailure(error, root)
      }
      // The root itself may be the missing one.
      await within([], below, () => Promise.resolve()).catch((cause: unknown) => {
        throw fileFailure(cause, root)
      })
      return undefined
    },
    async made(parts, use, mayRepeat) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await within(parts, belowOrMade, use)
        } catch (error) {
          if (attempt === ATTEMPTS || !hasCode(error, 'ENOENT') || !mayRepeat()) throw error
        }
      }
    },
  }
}

/** Whether a part of a path does not exist, or is a file or a symbolic link. */
const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR', 'ELOOP'].some((code) => hasCode(error, code))

export const closeHandle = (handle: FileHandle): Promise<void> => handle.close()

export function lastOf<T>(all: readonly [T, ...T[]]): T {
  return all.at(-1) ?? all[0]
}
