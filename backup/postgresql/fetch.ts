import { mkdir, open, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGunzip, gunzip } from 'node:zlib'
import tar from 'tar-stream'
import { hasCode, MooringError } from '../../shared/errors.ts'
import type { Catalog } from './catalog/catalog.ts'
import { logOf, parseWalKey } from './catalog/keys.ts'
import type { Part } from './catalog/manifest.ts'
import { ARCHIVE_CORRUPT, corrupt, type ReadDeps, readChecked, verify } from './catalog/read-object.ts'
import type { RestorePlan } from './catalog/restorable.ts'
import { WAL_DIRECTORY } from './restored-directory.ts'
import { SEGMENT_BYTES, segmentName } from './catalog/wal-names.ts'

const decompress = promisify(gunzip)

/** Maximum number of objects that are read at the same time: decompression runs in threads. */
const PARALLEL_PARTS = 2
const PARALLEL_SEGMENTS = 4

interface Target {
  readonly into: string
  /** Called with the size of each object that was read. */
  readonly onRead: (bytes: number) => void
}

/** Unpacks the parts of a backup. @throws MooringError `archive_corrupt`, or a code of the repository */
export async function fetchParts(
  deps: ReadDeps,
  { parts, into, onRead }: Target & { readonly parts: readonly Part[] },
): Promise<void> {
  await inParallel(PARALLEL_PARTS, parts, async (part) => {
    await unpack(deps, part, into)
    onRead(part.sizeBytes)
  })
}

async function unpack(deps: ReadDeps, part: Part, into: string): Promise<void> {
  try {
    const extract = tar.extract()
    await Promise.all([
      pipeline(readChecked(deps, part), createGunzip({ chunkSize: CHUNK_BYTES }), extract, { signal: deps.signal }),
      writeFiles(extract, into),
    ])
  } catch (error) {
    if (hasCode(error, ARCHIVE_CORRUPT)) throw error
    deps.signal.throwIfAborted()
    // A damaged object ends the decompression before its checksum is known.
    await verify(deps, part)
    throw error
  }
}

const CHUNK_BYTES = 256 * 1024

async function writeFiles(extract: tar.Extract, into: string): Promise<void> {
  for await (const entry of extract) {
    const { name, type } = entry.header
    const path = join(into, checkedPath(name))
    if (type === 'directory') {
      await mkdir(path, { recursive: true, mode: 0o700 })
      entry.resume()
      continue
    }
    if (type !== 'file') throw new MooringError(ARCHIVE_CORRUPT, `the backup has an entry of type ${type}: ${name}`)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await using file = await open(path, 'wx', 0o600)
    for await (const chunk of entry as AsyncIterable<Buffer>) await file.writeFile(chunk)
  }
}

/** Returns the path of an entry that stays below its directory. @throws MooringError `archive_corrupt` */
function checkedPath(name: string): string {
  if (name.split('/').some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
    throw new MooringError(ARCHIVE_CORRUPT, `the backup has an entry outside of the data directory: ${name}`)
  return name
}

/** Segment in the repository, and its name in `pg_wal`. */
export interface WalFile {
  readonly key: string
  readonly file: string
  readonly sha256: string
  readonly sizeBytes: number
}

/** Returns the segments that a plan replays. */
export function walFor(catalog: Catalog, { base, first, last }: RestorePlan): readonly WalFile[] {
  const corruptKeys = new Set(catalog.corruptKeys())
  const files = new Map<string, WalFile>()
  for (const { key, sizeBytes } of catalog.walObjects()) {
    const { log, segment, sha256 = '' } = parseWalKey(key) ?? {}
    if (!segment || log !== logOf(base) || segment.number < first || segment.number > last || corruptKeys.has(key)) continue
    const file = segmentName(segment)
    files.set(file, { key, file, sha256, sizeBytes })
  }
  return [...files.values()]
}

/** Writes the segments into the directory that recovery reads. @throws MooringError `archive_corrupt`, or a code of the repository */
export async function fetchWal(
  deps: ReadDeps,
  { wal, into, onRead }: Target & { readonly wal: readonly WalFile[] },
): Promise<void> {
  const directory = join(into, WAL_DIRECTORY)
  await mkdir(directory, { mode: 0o700 })
  await inParallel(PARALLEL_SEGMENTS, wal, async (file) => {
    await writeFile(join(directory, file.file), await contentOf(deps, file), { mode: 0o600, flag: 'wx' })
    onRead(file.sizeBytes)
  })
}

async function contentOf(deps: ReadDeps, { key, sha256 }: WalFile): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of readChecked(deps, { key, sha256 })) chunks.push(chunk)
  try {
    const content = await decompress(Buffer.concat(chunks), { maxOutputLength: SEGMENT_BYTES })
    if (content.length === SEGMENT_BYTES) return content
  } catch (error) {
    if (!hasCode(error, 'Z_DATA_ERROR') && !hasCode(error, 'Z_BUF_ERROR') && !hasCode(error, 'ERR_BUFFER_TOO_LARGE')) throw error
  }
  throw await corrupt(deps, key, 'is not a segment of WAL')
}

/** Runs `work` for all items, at most `count` at a time. After a failure no further item is begun. */
async function inParallel<T>(count: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const failed = new AbortController()
  const workers = Array.from({ length: count }, async () => {
    for (let item = left.shift(); item !== undefined && !failed.signal.aborted; item = left.shift()) {
      try {
        await work(item)
      } catch (error) {
        failed.abort()
        throw error
      }
    }
  })
  const results = await Promise.allSettled(workers)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
