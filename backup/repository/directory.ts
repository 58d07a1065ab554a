import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rmdir, statfs, unlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createListDirectory, TEMPORARY } from './directory-list.ts'
import { fileFailure, noSpace, notFound, unavailable, unlessCode } from './failures.ts'
import { closeHandle, createFolders, type Folder, lastOf, type Path } from './folders.ts'
import { createGate } from './gate.ts'
import { partsOfKey, partsOfPrefix } from './keys.ts'
import { measured } from './measured-body.ts'
import type { Repository } from './port.ts'

export interface DirectoryRepositoryOptions {
  /** Directory or mount point of a volume. It must exist: one that is missing may be a volume that is not mounted. */
  readonly directory: string
  /** Time of one operation of the file system in ms, after which the repository is unavailable. Default: a minute. */
  readonly limitMs?: number
}

const LIMIT_MS = 60_000
/** Maximum number of operations at one time: Node has 4 threads for files, and other work needs some. */
const PARALLEL = 2
const READ_BYTES = 256 * 1024
/** Bytes between two syncs, so that the last one of a large file does not exceed the time limit on a slow disk. */
const SYNC_BYTES = 16 * 1024 * 1024

/** Free space that objects do not use, as databases on the same disk stop when it is full: 512 MiB, or 5 % of a small disk. */
const SPARE_BYTES = 512 * 1024 * 1024
const SPARE_SHARE = 0.05
/** Maximum size of an object, such as `state.json`, that may use the spare space. */
const DOCUMENT_BYTES = 64 * 1024
/** Bytes between two checks of the free space. */
const CHECK_BYTES = 1024 * 1024

const WRITE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
// Without O_NONBLOCK, the opening of a named pipe waits for a writer.
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Keeps each object as a file, which only the user of this process can access (mode 0600, directories 0700). */
export function createDirectoryRepository({ directory, limitMs = LIMIT_MS }: DirectoryRepositoryOptions): Repository {
  const name = resolve(directory)
  const late = () =>
    unavailable(`${name} does not answer within ${limitMs / 1_000} s. Check the disk, or the server of a network file system.`)
  const gate = createGate({ parallel: PARALLEL, limitMs, late })
  const folders = createFolders(name, gate)
  const list = createListDirectory({ folders, gate })

  /** @throws MooringError with the code `full` of a repository */
  async function requireSpace(bytes: number): Promise<void> {
    const { bavail, blocks, bsize } = await gate(() => statfs(name))
    // Some network file systems do not know their size.
    if (blocks > 0 && bavail * bsize - bytes < Math.min(SPARE_BYTES, blocks * bsize * SPARE_SHARE)) throw noSpace(name)
  }

  async function write(file: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const handle = await gate(() => open(file, WRITE, 0o600), closeHandle)
    try {
      let unsynced = 0
      let written = 0
      let checkAt = DOCUMENT_BYTES
      for await (const chunk of chunks) {
        written += chunk.byteLength
        if (written > checkAt) {
          checkAt = written + CHECK_BYTES
          await requireSpace(chunk.byteLength)
        }
        await gate(() => handle.writeFile(chunk))
        unsynced += chunk.byteLength
        if (unsynced < SYNC_BYTES) continue
        await gate(() => handle.datasync())
        unsynced = 0
      }
      await gate(() => handle.sync())
    } finally {
      await gate(() => handle.close())
    }
  }

  /** Writes a file under another name and renames it, so that it is whole at any moment. */
  async function writeWhole(path: Path, file: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const folder = lastOf(path)
    const temporary = folder.path(`${TEMPORARY}${randomBytes(12).toString('hex')}`)
    try {
      await write(temporary, chunks)
      await gate(() => rename(temporary, folder.path(file)))
    } catch (error) {
      // A file that cannot be removed now is removed by a later list.
      await gate(() => unlink(temporary)).catch(() => undefined)
      throw error
    }
    // The directories above may be new, too: another writer may have made them and not synced them yet.
    for (const each of path.toReversed()) await each.sync()
  }

  async function openIn(folder: Folder, file: string): Promise<FileHandle | undefined> {
    const handle = await gate(() => open(folder.path(file), READ), closeHandle)
    if ((await gate(() => handle.stat())).isFile()) return handle
    await gate(() => handle.close())
    return undefined
  }

  async function openObject(key: string): Promise<FileHandle> {
    const parts = partsOfKey(key)
    const handle = await folders.ifPresent(parts.slice(0, -1), (path) => openIn(lastOf(path), lastOf(parts)))
    if (handle === undefined) throw notFound(name, key)
    return handle
  }

  async function* read(key: string, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const handle = await openObject(key)
    try {
      for (;;) {
        signal?.throwIfAborted()
        const buffer = Buffer.allocUnsafe(READ_BYTES)
        const { bytesRead } = await gate(() => handle.read(buffer, 0, READ_BYTES))
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
      }
    } catch (error) {
      signal?.throwIfAborted()
      throw fileFailure(error, name)
    } finally {
      await gate(() => handle.close())
    }
  }

  async function removeIn(folder: Folder, files: readonly string[]): Promise<void> {
    for (const file of files) await gate(() => unlessCode(['ENOENT', 'EISDIR'], unlink(folder.path(file))))
    await folder.sync()
  }

  /** Removes directories that have become empty, from the innermost on. */
  async function prune(parts: readonly string[]): Promise<void> {
    const [folder, above] = [parts.at(-1), parts.slice(0, -1)]
    if (folder === undefined) return
    const remove = (path: Path) =>
      gate(() => rmdir(lastOf(path).path(folder))).then(
        () => true,
        () => false,
      )
    // A failure ends the pruning: the directory still has objects, or another caller has removed it.
    if ((await folders.ifPresent(above, remove)) === true) await prune(above)
  }

  return {
    name,
    async put(key, body, signal) {
      const parts = partsOfKey(key)
      const source = measured(body, signal)
      const writeTo = (path: Path) => writeWhole(path, lastOf(parts), source.chunks)
      try {
        await folders.made(parts.slice(0, -1), writeTo, () => !source.isStarted())
        return source.stored()
      } catch (error) {
        source.throwFailure()
        throw fileFailure(error, name)
      }
    },
    async get(key, signal) {
      signal?.throwIfAborted()
      const handle = await openObject(key)
      // The file is opened again when it is read: a caller that never does so keeps no descriptor.
      await gate(() => handle.close())
      return read(key, signal)
    },
    list: (prefix, signal) => list(partsOfPrefix(prefix), signal),
    async delete(keys, signal) {
      const byFolder = Map.groupBy(keys.map(partsOfKey), (parts) => parts.slice(0, -1).join('/'))
      for (const [folder, files] of byFolder) {
        signal?.throwIfAborted()
        const parts = partsOfPrefix(folder === '' ? '' : `${folder}/`)
        await folders.ifPresent(parts, (path) => removeIn(lastOf(path), files.map(lastOf)))
        await prune(parts)
      }
    },
  }
}
