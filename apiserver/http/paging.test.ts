import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { annotations } from '../../crds/names.ts'
import { ApiError } from './errors.ts'
import { page, type PageKey, PageQuery, resourceKey } from './paging.ts'

const keyOf = (item: PageKey): PageKey => item
const Query = z.strictObject(PageQuery)

/** Few times, so that many items share one, like timestamps in whole seconds. */
const item = fc.record({
  createdAt: fc.integer({ min: 0, max: 5 }).map((second) => new Date(second * 1e3).toISOString()),
  id: fc.uuid(),
})
const items = fc.uniqueArray(item, { selector: ({ id }) => id, maxLength: 60 })

/** Reads all pages; `between` changes the list before each page except the first. */
function readAll(all: readonly PageKey[], limit: number, between = (list: readonly PageKey[]) => list): PageKey[] {
  const seen: PageKey[] = []
  let list = all
  let cursor: string | undefined
  do {
    const { items: shown, nextCursor } = page(list, { limit, cursor }, keyOf)
    seen.push(...shown)
    cursor = nextCursor ?? undefined
    list = between(list)
  } while (cursor !== undefined)
  return seen
}

describe('pages', () => {
  test('together hold each item once, newest first, whatever the order they come in', () => {
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 20 }), (all, limit) => {
        const seen = readAll(all, limit)
        expect(new Set(seen)).toEqual(new Set(all))
        expect(seen).toHaveLength(all.length)
        expect(seen.map(({ createdAt }) => createdAt)).toEqual(all.map(({ createdAt }) => createdAt).sort().reverse()) // prettier-ignore
      }),
    )
  })

  test('neither repeat nor hide an item while others come and go', () => {
    fc.assert(
      fc.property(items, items, fc.integer({ min: 1, max: 10 }), (stay, transient, limit) => {
        const ids = new Set(stay.map(({ id }) => id))
        const others = transient.filter(({ id }) => !ids.has(id))
        const seen = readAll(stay, limit, (list) => (list.length > stay.length ? stay : [...stay, ...others]))
        expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
        expect(seen.filter(({ id }) => ids.has(id))).toHaveLength(stay.length)
      }),
    )
  })

  test('have no next one after the last item', () => {
    const all = [{ createdAt: '2026-01-01T00:00:00Z', id: 'a' }]
    expect(page(all, { limit: 1 }, keyOf).nextCursor).toBeNull()
    expect(page([], { limit: 1 }, keyOf)).toEqual({ items: [], nextCursor: null })
  })
})

describe('a cursor', () => {
  test('that this API did not give is refused by name, never with another error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json().map((text) => Buffer.from(text).toString('base64url'))), (cursor) => {
        try {
          page([], { limit: 1, cursor }, keyOf)
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError)
          expect(error).toMatchObject({ code: 'invalid_request', details: [{ field: 'cursor' }] })
        }
      }),
    ) // prettier-ignore
    expect(() => page([], { limit: 1, cursor: 'bm9uc2Vuc2U' }, keyOf)).toThrow('cursor')
  })
})

describe('a limit', () => {
  test.each(['0', '201', '-1', '1.5', '1e2', ' 7', '', 'ten', '0x10', '99999999999'])('of "%s" is refused', (limit) => {
    const { error } = Query.safeParse({ limit })
    expect(error?.issues.map(({ path, message }) => ({ path, message }))).toEqual([
      { path: ['limit'], message: 'must be an integer from 1 to 200' },
    ])
  })

  test.each([
    { limit: '1', is: 1 },
    { limit: '200', is: 200 },
    { limit: undefined, is: 50 },
  ])('of $limit is $is', ({ limit, is }) => {
    expect(Query.parse({ limit }).limit).toBe(is)
  })
})

test('objects of the same second are ordered by the milliseconds of their annotation, not by id', () => {
  const object = (uid: string, at: string) => ({
    metadata: {
      ...{ uid, name: uid, resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-02T03:04:05Z' },
      annotations: { [annotations.createdAt]: `2026-01-02T03:04:05.${at}Z` },
    },
  })
  const objects = [object('b', '100'), object('c', '050'), object('a', '200')]
  const { items, nextCursor } = page(objects, { limit: 2 }, resourceKey)
  expect(items.map(({ metadata }) => metadata.uid)).toEqual(['a', 'b'])
  const rest = page(objects, { limit: 2, cursor: nextCursor ?? '' }, resourceKey)
  expect(rest.items.map(({ metadata }) => metadata.uid)).toEqual(['c'])
})
