import { spawn } from 'node:child_process'
import { randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectionRecord, requestRecord } from '../conformance/journal/records.ts'
import { type ReadableJournal, readableJournal, type TemporarySpool, temporarySpool } from '../support/journal/journal-server.ts'
import { patient } from '../support/patience.ts'

const program = fileURLToPath(new URL('../support/journal/endless-spool-writer.ts', import.meta.url))
let journal: ReadableJournal

beforeAll(async () => {
  journal = await readableJournal()
})
afterAll(() => journal[Symbol.asyncDispose]())

const requestsOf = (tunnel: string) => journal.reader.requests({ tunnel }, { limit: 100_000 })
const connectionsOf = (tunnel: string) => journal.reader.connections({ tunnel, refused: true }, { limit: 100_000 })
const sumOf = async (tunnel: string) =>
  (await journal.reader.stats(tunnel, { from: Date.now() - 3_600_000, to: Date.now() + 60_000 })).requests
const idsOf = (records: readonly { readonly id: string }[]) => records.map(({ id }) => id)

test('without a journal records are acknowledged and wait; then all are shipped in order, and the files are removed', async () => {
  await using place = await temporarySpool()
  const tunnel = randomUUIDv7()
  const spool = await place.open()
  const records = Array.from({ length: 3_000 }, (_, index) => requestRecord({ tunnel, path: `/${index}` }))
  for (const record of records) spool.request(record)
  const connect = connectionRecord({ tunnel })
  await spool.connection(connect)
  await spool.shipped(100)
  expect(await requestsOf(tunnel)).toEqual([])
  await place.setLogin(journal.server.logins.edge)
  await spool.shipped(patient(20_000))
  expect(idsOf(await requestsOf(tunnel))).toEqual(idsOf(records).reverse())
  expect(await connectionsOf(tunnel)).toEqual([connect])
  await spool[Symbol.asyncDispose]()
  expect(await readdir(place.directory)).toEqual([])
})

test('repeated crashes of the server lose no record and count none twice', { timeout: patient(240_000) }, async () => {
  await using place = await temporarySpool()
  await place.setLogin(journal.server.logins.edge)
  const tunnel = randomUUIDv7()
  await using spool = await place.open()
  let given = 0
  const send = setInterval(() => {
    for (let count = 0; count < 20; count += 1) spool.request(requestRecord({ tunnel, sourceIp: `203.0.113.${count}` }))
    given += 20
  }, 2)
  for (let crash = 0; crash < 3; crash += 1) {
    const before = given
    await expect.poll(() => given).toBeGreaterThan(before + 1_000)
    await journal.server.server.crash()
  }
  clearInterval(send)
  await spool.shipped(patient(30_000))
  expect(await requestsOf(tunnel)).toHaveLength(given)
  expect([await sumOf(tunnel), spool.dropped()]).toEqual([given, 0])
})

test(
  'past the bound the oldest requests are dropped and counted; connections never are',
  { timeout: patient(240_000) },
  async () => {
    await using place = await temporarySpool()
    const tunnel = randomUUIDv7()
    await using spool = await place.open({ bytes: 10_000_000 })
    const path = `/${'x'.repeat(2_000)}`
    const connects = []
    const given: string[] = []
    for (let round = 0; round < 10; round += 1) {
      const records = Array.from({ length: 1_000 }, () => requestRecord({ tunnel, path }))
      given.push(...idsOf(records))
      for (const record of records) spool.request(record)
      const connect = connectionRecord({ tunnel })
      await spool.connection(connect)
      connects.push(connect)
    }
    await expect.poll(() => spool.dropped()).toBeGreaterThan(0)
    await place.setLogin(journal.server.logins.edge)
    await spool.shipped(patient(30_000))
    const kept = idsOf(await requestsOf(tunnel)).reverse()
    await expect.poll(() => spool.dropped() + kept.length).toBe(given.length)
    expect(kept).toEqual(given.slice(-kept.length))
    expect(idsOf(await connectionsOf(tunnel))).toEqual(idsOf(connects).reverse())
  },
)

test('a record that the journal rejects is skipped and does not block other records', async () => {
  await using place = await temporarySpool()
  const tunnel = randomUUIDv7()
  await using spool = await place.open()
  const good = connectionRecord({ tunnel })
  await spool.connection(connectionRecord({ tunnel: 'no uuid' }))
  await spool.connection(good)
  const request = requestRecord({ tunnel })
  for (const record of [requestRecord({ tunnel: 'no uuid' }), request]) spool.request(record)
  await place.setLogin(journal.server.logins.edge)
  await spool.shipped(patient(20_000))
  expect(await connectionsOf(tunnel)).toEqual([good])
  expect(await requestsOf(tunnel)).toEqual([request])
  await expect.poll(() => spool.dropped()).toBe(2)
})

interface Said {
  readonly events: string[]
  /** Output of each run, in order. */
  readonly requests: string[][]
}

/** Runs the writer on the spool until it has printed `lines` lines, then kills it. */
async function killedAfter(
  lines: number,
  { directory, login }: TemporarySpool,
  { tunnel, said }: { readonly tunnel: string; readonly said: Said },
) {
  const child = spawn(process.execPath, [program, directory, login, tunnel], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const requests: string[] = []
  said.requests.push(requests)
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may be truncated.
    const [, what, id = ''] = /^(request|connect|disconnect) (\S+)\.$/.exec(line) ?? []
    if (what === 'request') requests.push(id)
    else if (what !== undefined) said.events.push(id)
    count += 1
    if (count === lines) child.kill('SIGKILL')
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
}

test(
  'after kill -9 the journal has all acknowledged connections, and at most the newest requests are missing',
  { timeout: patient(240_000) },
  async () => {
    await using place = await temporarySpool()
    const tunnel = randomUUIDv7()
    const said: Said = { events: [], requests: [] }
    await killedAfter(200, place, { tunnel, said })
    await place.setLogin(journal.server.logins.edge)
    for (const lines of [50, 1_000, 4_000]) await killedAfter(lines, place, { tunnel, said })
    const spool = await place.open()
    await spool.shipped(patient(30_000))
    await spool[Symbol.asyncDispose]()
    const connections = new Set(idsOf(await connectionsOf(tunnel)))
    expect(said.events.filter((id) => !connections.has(id))).toEqual([])
    const requests = await requestsOf(tunnel)
    const kept = new Set(idsOf(requests))
    for (const run of said.requests) {
      const missing = run.filter((id) => !kept.has(id))
      expect(missing).toEqual(run.slice(run.length - missing.length))
    }
    expect(kept.size).toBeGreaterThan(1_000)
    expect(await sumOf(tunnel)).toBe(requests.length)
  },
)
