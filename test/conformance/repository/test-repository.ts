import { createHash, randomBytes } from 'node:crypto'
import type { Entry, Repository } from '../../../backup/repository/port.ts'

/** Empty repository for one test. */
export interface TestRepository extends AsyncDisposable {
  readonly repository: Repository
}
export type Open = () => Promise<TestRepository>

export const MIB = 1024 * 1024

/** Returns an object's bytes as one chunk, or as chunks of `chunkBytes`. */
export async function* body(content: string | Uint8Array, chunkBytes = Infinity): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(content)
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes)
}

/** Yields `bytes` random bytes in chunks of 64 KiB, then fails with `error` if there is one. */
export async function* randomBody(bytes: number, error?: Error): AsyncGenerator<Uint8Array> {
  for (let left = bytes; left > 0; left -= 65_536) yield randomBytes(Math.min(left, 65_536))
  if (error) throw error
}

export async function read(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks))
}

export const textOf = async (repository: Repository, key: string): Promise<string> =>
  (await read(await repository.get(key))).toString()

export const listed = (repository: Repository, prefix = ''): Promise<Entry[]> => Array.fromAsync(repository.list(prefix))

export const keysOf = async (repository: Repository, prefix = ''): Promise<string[]> =>
  (await listed(repository, prefix)).map(({ key }) => key)

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Puts small objects, some at a time. */
export async function putAll(repository: Repository, keys: readonly string[]): Promise<void> {
  const left = keys.values()
  const put = async () => {
    for (const key of left) await repository.put(key, body(key))
  }
  await Promise.all(Array.from({ length: 16 }, put))
}
