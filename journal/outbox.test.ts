import { afterEach, expect, test, vi } from 'vitest'
import { auditRecord, connectionRecord, requestRecord } from '../test/conformance/journal/records.ts'
import { createFollowers } from './followers.ts'
import { createOutbox, type Shipment } from './outbox.ts'
import { requestBatch, requestRows } from './request-text.ts'

const tunnel = 't'
afterEach(() => {
  vi.useRealTimers()
})
const noRoom = Object.assign(new Error('no room'), { again: true })
const never = Object.assign(new Error('no such thing'), { again: false })

/** Creates an outbox whose shipments the test answers one by one. */
function withShip(options: { readonly waitingBytes?: number } = {}) {
  const shipped: { shipment: Shipment; answer: PromiseWithResolvers<{ refused: number }> }[] = []
  let arrived = Promise.withResolvers<undefined>()
  const synced = Promise.withResolvers<undefined>()
  const drops: Record<string, number> = {}
  const followers = createFollowers((error) => {
    throw error
  })
  let synchronized = true
  let syncs = 0
  let syncErrors: Error[] = []
  const outbox = createOutbox({
    keep(shipment) {
      const answer = Promise.withResolvers<{ refused: number }>()
      shipped.push({ shipment, answer })
      arrived.resolve(undefined)
      return answer.promise
    },
    sync: async () => {
      syncs += 1
      const error = syncErrors.shift()
      if (error) throw error
      if (!synchronized) await synced.promise
    },
    followers,
    onDrop: (reason, records) => {
      drops[reason] = (drops[reason] ?? 0) + records
    },
    onKept: () => undefined,
    onFailure: () => Promise.resolve(),
    waitingBytes: 1_000_000,
    ...options,
  })
  return {
    outbox,
    followers,
    drops,
    syncs: () => syncs,
    holdSync: () => {
      synchronized = false
      return () => synced.resolve(undefined)
    },
    failSync: (...errors: Error[]) => {
      syncErrors = errors
      return () => syncErrors.length
    },
    next: async () => {
      if (shipped.length === 0) await arrived.promise
      arrived = Promise.withResolvers<undefined>()
      const first = shipped.shift()
      if (!first) throw new Error('nothing was shipped')
      return first
    },
  }
}

const paths = ({ requests }: Shipment) => requests.flatMap(requestRows).map(({ path }) => path)
const ok = { refused: 0 }

test('requests are shipped together, one shipment at a time', async () => {
  const { outbox, next } = withShip()
  for (const path of ['/a', '/b']) outbox.request(requestRecord({ tunnel, path }))
  const first = await next()
  expect(paths(first.shipment)).toEqual(['/a', '/b'])
  for (const path of ['/c', '/d']) outbox.request(requestRecord({ tunnel, path }))
  await expect.poll(() => outbox.backlog().records).toBe(2)
  first.answer.resolve(ok)
  const second = await next()
  expect(paths(second.shipment)).toEqual(['/c', '/d'])
  second.answer.resolve(ok)
  await outbox.close()
})

test('a failed shipment is shipped again, together with newer records', async () => {
  const { outbox, next, drops } = withShip()
  outbox.request(requestRecord({ tunnel, path: '/a' }))
  const connection = outbox.connection(connectionRecord({ tunnel }))
  const first = await next()
  outbox.request(requestRecord({ tunnel, path: '/b' }))
  first.answer.reject(noRoom)
  const again = await next()
  expect(again.shipment.connections).toHaveLength(1)
  again.answer.resolve(ok)
  await connection
  const closing = outbox.close()
  if (paths(again.shipment).length < 2) (await next()).answer.resolve(ok)
  await closing
  expect(drops).toEqual({})
})

test('past the bound the oldest requests are dropped and counted; connections never are', async () => {
  const bytes = requestBatch([requestRecord({ tunnel, path: '/0' })]).length
  const { outbox, next, drops } = withShip({ waitingBytes: 3 * bytes })
  const connection = outbox.connection(connectionRecord({ tunnel }))
  const first = await next()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  for (let count = 0; count < 10; count += 1) {
    outbox.request(requestRecord({ tunnel, path: `/${count}` }))
    vi.advanceTimersByTime(10)
  }
  first.answer.reject(noRoom)
  const again = await next()
  expect(paths(again.shipment)).toEqual(['/7', '/8', '/9'])
  expect([drops, again.shipment.connections.length]).toEqual([{ no_room: 7 }, 1])
  again.answer.resolve(ok)
  await connection
  await outbox.close()
})

test('a record that can never be kept does not affect the others', async () => {
  const { outbox, next, drops } = withShip()
  outbox.request(requestRecord({ tunnel }))
  const outcomes = Promise.allSettled([
    outbox.connection(connectionRecord({ tunnel })),
    outbox.audit(auditRecord({ namespace: 'n' })),
  ])
  const all = await next()
  all.answer.reject(never)
  const parts: Shipment[] = []
  for (let count = 0; count < (all.shipment.requests.length === 0 ? 2 : 3); count += 1) {
    const part = await next()
    parts.push(part.shipment)
    if (part.shipment.audit.length > 0) part.answer.reject(never)
    else part.answer.resolve(ok)
  }
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  const closing = outbox.close()
  if (all.shipment.requests.length === 0) (await next()).answer.resolve(ok)
  await closing
  expect(drops).toEqual({})
})

test('a connection is acknowledged once it is synced; requests do not wait for the sync', async () => {
  const { outbox, next, holdSync } = withShip()
  const release = holdSync()
  let acknowledged = false
  const connection = outbox.connection(connectionRecord({ tunnel })).then(() => {
    acknowledged = true
  })
  ;(await next()).answer.resolve(ok)
  outbox.request(requestRecord({ tunnel }))
  ;(await next()).answer.resolve(ok)
  expect(acknowledged).toBe(false)
  release()
  await connection
  await outbox.close()
})

test('closing ships the waiting records, drops those that fail, and rejects new ones', async () => {
  const { outbox, next, drops } = withShip()
  outbox.request(requestRecord({ tunnel }))
  const waiting = Promise.allSettled([outbox.connection(connectionRecord({ tunnel }))])
  const closing = outbox.close()
  ;(await next()).answer.reject(noRoom)
  await closing
  outbox.request(requestRecord({ tunnel }))
  await expect(outbox.connection(connectionRecord({ tunnel }))).rejects.toMatchObject({ code: 'unavailable' })
  expect((await waiting).map(({ status }) => status)).toEqual(['rejected'])
  expect(drops).toEqual({ closed: 2 })
})

test('a failed sync is retried, and events are acknowledged only when it succeeds', async () => {
  const { outbox, next, failSync } = withShip()
  const failuresLeft = failSync(noRoom, noRoom)
  const connection = outbox.connection(connectionRecord({ tunnel }))
  ;(await next()).answer.resolve(ok)
  await connection
  expect(failuresLeft()).toBe(0)
  await outbox.close()
})

test('events that arrive during a sync or its retry wait for another sync', async () => {
  const { outbox, next, holdSync, failSync, syncs } = withShip()
  failSync(noRoom)
  const release = holdSync()
  const connections: Promise<void>[] = []
  for (let count = 0; count < 5; count += 1) {
    connections.push(outbox.connection(connectionRecord({ tunnel })))
    ;(await next()).answer.resolve(ok)
  }
  await expect.poll(syncs).toBe(2)
  connections.push(outbox.connection(connectionRecord({ tunnel })))
  ;(await next()).answer.resolve(ok)
  await outbox.flush()
  release()
  await Promise.all(connections)
  expect(syncs()).toBe(3)
  await outbox.close()
})

test('a sync error without a retry hint rejects the waiting events', async () => {
  const { outbox, next, failSync } = withShip()
  failSync(new Error('lost'))
  const outcome = Promise.allSettled([outbox.connection(connectionRecord({ tunnel }))])
  ;(await next()).answer.resolve(ok)
  expect((await outcome).map(({ status }) => status)).toEqual(['rejected'])
  await outbox.close()
})

test('a flush resolves when the attempt has failed', async () => {
  const { outbox, next } = withShip()
  outbox.request(requestRecord({ tunnel }))
  const flushed = outbox.flush()
  ;(await next()).answer.reject(noRoom)
  await flushed
  const closing = outbox.close()
  ;(await next()).answer.resolve(ok)
  await closing
})
