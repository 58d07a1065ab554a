import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { MooringError, hasCode } from '../../../shared/errors.ts'
import { type Repository, RepositoryCode } from '../../repository/port.ts'
import { bodyOf, readSmall } from '../../repository/small-objects.ts'
import { corruptKey } from './keys.ts'

/** Code of an object that differs from its checksum, or is missing. */
export const ARCHIVE_CORRUPT = 'archive_corrupt'

export interface ReadDeps {
  readonly repository: Repository
  readonly prefix: string
  readonly signal: AbortSignal
}

export interface Checked {
  /** Key below the prefix. */
  readonly key: string
  readonly sha256: string
}

/**
 * Yields the bytes of an object, and fails at the end when they differ from the checksum: the caller must then discard what it made of them.
 * A corrupt object gets a note in the repository, so that it no longer counts for the restorable window.
 * @throws MooringError `archive_corrupt`, or a code of the repository
 */
export async function* readChecked(deps: ReadDeps, { key, sha256 }: Checked): AsyncIterable<Uint8Array> {
  const hash = createHash('sha256')
  const { repository, prefix, signal } = deps
  let body: AsyncIterable<Uint8Array>
  try {
    body = await repository.get(`${prefix}/${key}`, signal)
  } catch (error) {
    if (hasCode(error, RepositoryCode.notFound)) throw await corrupt(deps, key, 'is missing')
    throw error
  }
  for await (const chunk of body) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== sha256) throw await corrupt(deps, key, 'differs from its checksum')
}

/** Reads an object to its end, for its checksum. @throws as {@link readChecked} */
export async function verify(deps: ReadDeps, object: Checked): Promise<void> {
  await pipeline(readChecked(deps, object), async (chunks: AsyncIterable<Uint8Array>) => {
    let size = 0
    for await (const chunk of chunks) size += chunk.length
    return size
  })
}

/** Writes the note that an object is corrupt, if the repository accepts it: a restore may have read access alone. @returns the error to throw */
export async function corrupt({ repository, prefix, signal }: ReadDeps, key: string, how: string): Promise<MooringError> {
  try {
    await repository.put(`${prefix}/${corruptKey(key)}`, bodyOf(Buffer.from(`${how}\n`)), signal)
  } catch (error) {
    if (!hasCode(error, RepositoryCode.unavailable) && !hasCode(error, RepositoryCode.full)) throw error
  }
  return new MooringError(ARCHIVE_CORRUPT, `${key} in ${repository.name} ${how}: it no longer counts for the restorable window`)
}

/** Maximum size of an object that is read into memory whole. */
const SMALL_BYTES = 4 * 1024 * 1024

/** Reads a small object as text; undefined when it is missing or larger than 4 MiB. */
export function readText({ repository, prefix, signal }: ReadDeps, key: string): Promise<string | undefined> {
  return readSmall(repository, { key: `${prefix}/${key}`, maxBytes: SMALL_BYTES }, signal)
}
