import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { FileHandle } from 'node:fs/promises'
import tar from 'tar-stream'
import { MooringError } from '../../shared/errors.ts'
import { type Repository, RepositoryCode } from '../repository/port.ts'
import type { DataEntry } from './data-files.ts'
import type { Part } from './catalog/manifest.ts'

/** Size of the files in a part beyond which the next part begins. A file is whole in one part. */
const PART_BYTES = 256 * 1024 * 1024
const CHUNK_BYTES = 256 * 1024

export interface PartsDeps {
  readonly repository: Repository
  readonly prefix: string
  /** Key of a part below the prefix. */
  readonly keyOf: (number: number) => string
  readonly signal: AbortSignal
  /** Waits until this many bytes may be read. */
  readonly take: (bytes: number) => Promise<void>
}

/** Writes files into objects, each of which is a tar archive compressed by gzip. */
export interface PartsWriter {
  add(entry: DataEntry): Promise<void>
  addText(path: string, text: string): Promise<void>
  /** Ends the last part. */
  end(): Promise<readonly Part[]>
  /** Size of the files so far. */
  dataBytes(): number
}

interface OpenPart {
  readonly pack: tar.Pack
  readonly stored: Promise<Part>
  bytes: number
}

export function createPartsWriter(deps: PartsDeps): PartsWriter {
  const parts: Part[] = []
  let number = 0
  let dataBytes = 0
  let current: OpenPart | undefined

  async function finish(): Promise<void> {
    if (!current) return
    current.pack.finalize()
    parts.push(await current.stored)
    current = undefined
  }

  async function partFor(bytes: number): Promise<OpenPart> {
    if (current && current.bytes > 0 && current.bytes + bytes > PART_BYTES) await finish()
    if (!current) {
      number += 1
      current = openPart(deps, deps.keyOf(number))
    }
    current.bytes += bytes
    dataBytes += bytes
    return current
  }

  return {
    async add(entry) {
      if (entry.kind === 'directory') {
        const { pack } = await partFor(0)
        pack.entry({ name: entry.path, type: 'directory', mode: 0o700 })
        return
      }
      const part = await partFor(entry.sizeBytes)
      const header = { name: entry.path, size: entry.sizeBytes, mode: 0o600 }
      await writeEntry(part, header, contentOf(entry.handle, entry.sizeBytes, deps.take))
    },
    async addText(path, text) {
      const bytes = Buffer.from(text)
      await writeEntry(await partFor(bytes.length), { name: path, size: bytes.length, mode: 0o600 }, [bytes])
    },
    async end() {
      await finish()
      return parts
    },
    dataBytes: () => dataBytes,
  }
}

/** Writes one file. Stops when the upload of the part fails, as nothing reads the archive then. */
async function writeEntry(
  { pack, stored }: OpenPart,
  header: { readonly name: string; readonly size: number; readonly mode: number },
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const failed = new AbortController()
  const entry = pack.entry(header)
  const fail = (): void => failed.abort()
  stored.catch(fail)
  try {
    await pipeline(content, entry, { signal: failed.signal })
  } catch (error) {
    if (failed.signal.aborted) await stored
    throw error
  }
}

function openPart({ repository, prefix, signal }: PartsDeps, key: string): OpenPart {
  const pack = tar.pack()
  const gzip = createGzip({ level: 1, chunkSize: CHUNK_BYTES })
  const hash = createHash('sha256')
  async function* hashed(): AsyncIterable<Uint8Array> {
    for await (const chunk of gzip as AsyncIterable<Buffer>) {
      hash.update(chunk)
      yield chunk
    }
  }
  const compressed = pipeline(pack, gzip, { signal })
  const stored = Promise.all([repository.put(`${prefix}/${key}`, hashed(), signal), compressed]).then(
    ([{ sizeBytes, sha256 }]) => {
      if (sha256 !== hash.digest('hex'))
        throw new MooringError(RepositoryCode.unavailable, `${repository.name} stored other bytes than it was sent`)
      return { key, sizeBytes, sha256 }
    },
    (error: unknown) => {
      gzip.destroy()
      throw error
    },
  )
  // The next write, or the end of the part, reports the failure.
  stored.catch(() => undefined)
  return { pack, stored, bytes: 0 }
}

/** Reads exactly `size` bytes: a file that was truncated meanwhile is padded with zeros, which the replay of WAL corrects. */
async function* contentOf(handle: FileHandle, size: number, take: (bytes: number) => Promise<void>): AsyncIterable<Uint8Array> {
  for (let done = 0; done < size;) {
    const wanted = Math.min(CHUNK_BYTES, size - done)
    await take(wanted)
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, done)
    yield bytesRead === 0 ? Buffer.alloc(wanted) : buffer.subarray(0, bytesRead)
    done += bytesRead === 0 ? wanted : bytesRead
  }
}
