import { randomUUIDv7 } from 'node:crypto'
import { expect } from 'vitest'
import type { Journal, RequestRecord } from '../../../journal/port.ts'
import { LATER } from '../../support/patience.ts'

/** Journal for one test. Other tests may write to it at the same time. */
export interface TestJournal extends AsyncDisposable {
  readonly journal: Journal
}
export type Open = () => Promise<TestJournal>

/** Returns a unique uid of a tunnel. */
export const newTunnel = (): string => randomUUIDv7()
export const newNamespace = (): string => `test--${randomUUIDv7()}`

/** Writes requests, and waits until the logs of their tunnels have all of them. */
export async function keepRequests(journal: Journal, records: readonly RequestRecord[]): Promise<void> {
  for (const record of records) journal.request(record)
  for (const [tunnel, of = []] of Object.entries(Object.groupBy(records, (record) => record.tunnel))) {
    const ids = new Set(of.map(({ id }) => id))
    const found = () => journal.requests({ tunnel }, { limit: 10_000 })
    await expect.poll(async () => (await found()).filter(({ id }) => ids.has(id)).length, LATER).toBe(ids.size)
  }
}
