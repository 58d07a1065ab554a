import type { Dirent, Stats } from 'node:fs'
import { lstat, readdir, unlink } from 'node:fs/promises'
import { unlessCode } from './failures.ts'
import { type Folder, type Folders, lastOf } from './folders.ts'
import type { Gate } from './gate.ts'
import { isKeyPart } from './keys.ts'
import type { Entry } from './port.ts'

/** First character of the name of a half-written file. No key contains it. */
export const TEMPORARY = '~'
/** Age after which a half-written file belongs to no running writer: each write renews its time. */
const ABANDONED_MS = 3_600_000

/** Number of files whose sizes are read at the same time. */
const BATCH = 64

/** Entry of a directory. A directory has no size. */
interface Found {
  readonly part: string
  /** Text by which entries sort like their keys: the name, with `/` after that of a directory. */
  readonly order: string
  readonly sizeBytes?: number
}

/** Lists the objects below a directory in the order of their keys, and removes what crashed writers have left there. */
export type ListDirectory = (parts: readonly string[], signal: AbortSignal | undefined) => AsyncIterable<Entry>

export function createListDirectory({ folders, gate }: { readonly folders: Folders; readonly gate: Gate }): ListDirectory {
  async function* list(parts: readonly string[], signal: AbortSignal | undefined): AsyncGenerator<Entry> {
    signal?.throwIfAborted()
    for (const { part, sizeBytes } of await entriesOf(parts)) {
      const inner = [...parts, part]
      if (sizeBytes === undefined) yield* list(inner, signal)
      else yield { key: inner.join('/'), sizeBytes }
    }
  }

  async function entriesOf(parts: readonly string[]): Promise<readonly Found[]> {
    const found = await folders.ifPresent(parts, async (path) => {
      const folder = lastOf(path)
      const all = await gate(() => readdir(folder.path('.'), { withFileTypes: true }))
      const entries: Found[] = []
      for (let from = 0; from < all.length; from += BATCH)
        entries.push(...(await Promise.all(all.slice(from, from + BATCH).map((entry) => inspect(folder, entry)))).flat())
      return entries
    })
    return (found ?? []).toSorted((one, other) => (one.order < other.order ? -1 : 1))
  }

  async function inspect(folder: Folder, entry: Dirent): Promise<readonly Found[]> {
    const isPart = isKeyPart(entry.name)
    if (entry.isDirectory()) return isPart ? [{ part: entry.name, order: `${entry.name}/` }] : []
    if (!entry.isFile()) return []
    const stats = await gate(() => unlessCode(['ENOENT'], lstat(folder.path(entry.name))))
    if (!stats?.isFile()) return []
    if (isPart) return [{ part: entry.name, order: entry.name, sizeBytes: stats.size }]
    if (isAbandoned(entry.name, stats)) await gate(() => unlink(folder.path(entry.name))).catch(() => undefined)
    return []
  }

  return list
}

const isAbandoned = (file: string, { mtimeMs }: Stats): boolean =>
  file.startsWith(TEMPORARY) && Date.now() - mtimeMs > ABANDONED_MS
