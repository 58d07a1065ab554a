import { z } from 'zod'
import type { ObjectMeta } from '../../crds/kind.ts'
import { createdAtOf } from '../resources/names-and-times.ts'
import { ApiError } from './errors.ts'

export const PAGE_LIMIT = { default: 50, max: 200 } as const

const DIGITS = /^\d{1,9}$/
const toInteger = (value: unknown): unknown => (typeof value === 'string' && DIGITS.test(value) ? Number(value) : value)
const limitRule = `must be an integer from 1 to ${PAGE_LIMIT.max}`

/** Query parameters of every list: `z.object({ ...PageQuery, identifier: … })`. */
export const PageQuery = {
  limit: z
    .preprocess(toInteger, z.int(limitRule).min(1, limitRule).max(PAGE_LIMIT.max, limitRule))
    .default(PAGE_LIMIT.default)
    // `preprocess` hides the default from the OpenAPI document.
    .meta({ default: PAGE_LIMIT.default })
    .describe('Maximum number of items on the page.'),
  cursor: z
    .string()
    .min(1)
    .max(512)
    .meta({ pattern: '^[A-Za-z0-9_-]+$' })
    .optional()
    .describe('`nextCursor` of the previous page.'),
}

/** Sort key of a list: newest first, then by id. `createdAt` is RFC 3339 UTC or another text of fixed width, so text order is time order. */
export interface PageKey {
  readonly createdAt: string
  readonly id: string
}

export interface Page<T> {
  readonly items: readonly T[]
  /** Cursor of the next page; null on the last. */
  readonly nextCursor: string | null
}

/** Page key of a resource. */
export const resourceKey = ({ metadata }: { readonly metadata: ObjectMeta }): PageKey => ({
  createdAt: createdAtOf(metadata),
  id: metadata.uid,
})

/**
 * Returns one page of `items`, which may be in any order. The cursor names the last item shown instead of a position, so an item that is added
 * or removed between two pages neither repeats nor hides another.
 * @throws ApiError `invalid_request` naming `cursor`
 */
export function page<T>(
  items: readonly T[],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  keyOf: (item: T) => PageKey,
): Page<T> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor)
  const found = first(
    // Caches list the oldest first: read from the end, one comparison rejects nearly every further item.
    items
      .toReversed()
      .values()
      .map((item) => ({ item, key: keyOf(item) })),
    limit + 1,
    after,
  )
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown.map(({ item }) => item), nextCursor: last && found.length > limit ? encodeCursor(last.key) : null }
}

interface Keyed<T> {
  readonly item: T
  readonly key: PageKey
}

/** Returns the first `count` items after `after`, in order. Sorting a long list for one page would take several times as long. */
function first<T>(items: Iterable<Keyed<T>>, count: number, after: PageKey | undefined): readonly Keyed<T>[] {
  const best: Keyed<T>[] = []
  for (const entry of items) {
    if (after && compare(entry.key, after) <= 0) continue
    const last = best.at(-1)
    if (best.length === count && last && compare(entry.key, last.key) >= 0) continue
    best.splice(positionOf(entry, best), 0, entry)
    if (best.length > count) best.pop()
  }
  return best
}

/** Returns the position of `entry` in an ordered list, by binary search. */
function positionOf<T>(entry: Keyed<T>, ordered: readonly Keyed<T>[]): number {
  let [low, high] = [0, ordered.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const at = ordered[middle]
    if (at && compare(at.key, entry.key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

function compare(a: PageKey, b: PageKey): number {
  if (a.createdAt !== b.createdAt) return a.createdAt > b.createdAt ? -1 : 1
  if (a.id === b.id) return 0
  // Same time: uids of the embedded mode begin with their millisecond (RFC 9562, section 5.7).
  return a.id > b.id ? -1 : 1
}

const Cursor = z.tuple([z.string().max(40), z.string().max(200)])

function encodeCursor({ createdAt, id }: PageKey): string {
  return Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')
}

function decodeCursor(cursor: string): PageKey {
  try {
    const [createdAt, id] = Cursor.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    const key = { createdAt, id }
    if (encodeCursor(key) === cursor) return key
  } catch {
    // Every invalid cursor gets the same answer.
  }
  throw new ApiError('invalid_request', 'invalid cursor', {
    details: [{ field: 'cursor', message: 'must be the nextCursor of a previous page' }],
  })
}
