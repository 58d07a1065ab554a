import { hasCode } from '../../shared/errors.ts'
import { type Repository, RepositoryCode } from './port.ts'

/** Returns the body of an object that is in memory as a whole. */
export async function* bodyOf(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

export interface SmallObject {
  readonly key: string
  readonly maxBytes: number
}

/** Reads an object as text; undefined when it is missing or larger than `maxBytes`. @throws MooringError with another code of the repository */
export async function readSmall(
  repository: Repository,
  { key, maxBytes }: SmallObject,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of await repository.get(key, signal)) {
      size += chunk.byteLength
      if (size > maxBytes) return undefined
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } catch (error) {
    if (hasCode(error, RepositoryCode.notFound)) return undefined
    throw error
  }
}
