import { randomUUIDv7 } from 'node:crypto'
import { expect } from 'vitest'
import type { Journal, RequestRecord } from '../../../journal/port.ts'

/** A journal for one test, which others may be writing to as well. */
export interface Place extends AsyncDisposable {
  readonly journal: Journal
}
export type Open = () => Promise<Place>

/** A tunnel that no other test has. */
export const someTunnel = (): string => randomUUIDv7()
export const someNamespace = (): string => `test--${randomUUIDv7()}`

/** Hands requests over and waits until the log of each has them all. */
export async function keepRequests(journal: Journal, records: readonly RequestRecord[]): Promise<void> {
  for (const record of records) journal.request(record)
  for (const [tunnel, of = []] of Object.entries(Object.groupBy(records, (record) => record.tunnel))) {
    const ids = new Set(of.map(({ id }) => id))
    const found = () => journal.requests({ tunnel }, { limit: 10_000 })
    await expect.poll(async () => (await found()).filter(({ id }) => ids.has(id)).length, { timeout: 10_000 }).toBe(ids.size)
  }
}
