import { createHash } from 'node:crypto'
import { constants, type FileHandle, open, readdir, rm, unlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { hasCode, MooringError } from '../../../shared/errors.ts'
import { type Repository, RepositoryCode } from '../../repository/port.ts'
import { bodyOf } from '../../repository/small-objects.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { descriptorPath, openDirectory } from '../data-files.ts'
import { logOf, walKey } from '../catalog/keys.ts'
import { DROPPED } from '../settings.ts'
import { parseSegment, readSegmentHeader, SEGMENT_BYTES, type SegmentHeader } from '../catalog/wal-names.ts'

const compress = promisify(gzip)

export interface ShipperDeps {
  readonly repository: Repository
  readonly prefix: string
  readonly spoolDirectory: string
  readonly catalog: Catalog
  /** Returns the time in ms of the mark in a file; undefined without one. */
  readonly markOf: (file: string) => number | undefined
  /** Called when a file is in the repository, before its removal from the spool. */
  readonly onShipped: (file: string) => Promise<void>
}

/**
 * Moves what is in the spool to the repository, in the order of the log. A file leaves the spool after the repository has it durably, so a
 * killed agent ships it again.
 * @returns the number of files that were shipped
 */
export function ship(deps: ShipperDeps, signal: AbortSignal): Promise<number> {
  return inSpool(deps.spoolDirectory, 0, async (spool) => {
    const files = await spooledIn(spool)
    for (const file of files) {
      signal.throwIfAborted()
      await shipFile(deps, { spool, file }, signal)
      await deps.onShipped(file)
      await unlink(`${descriptorPath(spool)}/${file}`)
    }
    return files.length
  })
}

/** Whether the server dropped WAL because the spool was full. */
export function isDropped(directory: string): Promise<boolean> {
  return inSpool(directory, false, async (spool) => (await readdir(descriptorPath(spool))).includes(DROPPED))
}

/** Removes the server's note that it dropped WAL. */
export function forgetDropped(directory: string): Promise<void> {
  return inSpool(directory, undefined, async (spool) => {
    await rm(`${descriptorPath(spool)}/${DROPPED}`, { force: true })
  })
}

/** Returns the number of files in the spool. */
export function countSpooled(directory: string): Promise<number> {
  return inSpool(directory, 0, async (spool) => (await spooledIn(spool)).length)
}

/** Calls `work` with the open spool. @returns `missing` before the server creates the spool, with its first segment */
async function inSpool<T>(directory: string, missing: T, work: (spool: FileHandle) => Promise<T>): Promise<T> {
  const spool = await openSpool(directory)
  if (!spool) return missing
  try {
    return await work(spool)
  } finally {
    await spool.close()
  }
}

/** No link is followed: the server's user may own the directory above. */
function openSpool(directory: string): Promise<FileHandle | undefined> {
  return openDirectory(directory).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
}

/** Names of complete files, in the order of the log. */
async function spooledIn(spool: FileHandle): Promise<readonly string[]> {
  return (await readdir(descriptorPath(spool))).filter((name) => !name.endsWith('.tmp') && name !== DROPPED).sort()
}

interface Spooled {
  readonly spool: FileHandle
  readonly file: string
}

/**
 * Puts a segment into the repository. Skips files that no restore needs: histories of timelines, labels of backups, and unfinished segments of an
 * ended timeline. Also skips a file that is not the segment that it is named after, which leaves a gap and so ends the window.
 */
async function shipFile(deps: ShipperDeps, waiting: Spooled, signal: AbortSignal): Promise<void> {
  const { repository, prefix, catalog, markOf } = deps
  const segment = parseSegment(waiting.file)
  if (!segment) return
  const found = await read(waiting)
  if (found?.header.number !== segment.number) return
  const bytes = await compress(found.content, { level: 1 })
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const log = logOf({ ...found.header, timeline: segment.timeline })
  const key = walKey({ log, segment, sha256, markedAt: markOf(waiting.file) })
  const stored = await repository.put(`${prefix}/${key}`, bodyOf(bytes), signal)
  if (stored.sha256 !== sha256)
    throw new MooringError(
      RepositoryCode.unavailable,
      `${repository.name} stored other bytes of ${waiting.file} than it was sent`,
    )
  catalog.add({ key, sizeBytes: stored.sizeBytes })
}

/** Reads a segment; undefined for another file. */
async function read({ spool, file }: Spooled): Promise<{ content: Buffer; header: SegmentHeader } | undefined> {
  await using handle = await open(
    `${descriptorPath(spool)}/${file}`,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  )
  const { nlink, size } = await handle.stat()
  // A second link could be to a file that the server's user cannot read.
  const content = nlink === 1 && size === SEGMENT_BYTES ? await handle.readFile() : Buffer.of()
  const header = readSegmentHeader(content)
  return header && { content, header }
}
