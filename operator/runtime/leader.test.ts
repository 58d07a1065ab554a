import { expect, test } from 'vitest'
import { Lease } from '../../crds/core.ts'
import { StoreError, type Preconditions, type Store } from '../../store/port.ts'
import type { ApiRequest, KubernetesClient } from '../../store/kubernetes/client.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../test/support/clocks.ts'
import { createFencedStore, createLeaderElection } from './leader.ts'

const KEY = { namespace: 'n', name: 'l' }
const TIMES = { leaseMs: 12_000, renewDeadlineMs: 8_000, renewMs: 2_000, retryMs: 1_000 }
const log = { info: () => undefined, warn: () => undefined }

type Fault = 'unavailable' | 'hang' | undefined

/** A store of one Lease in memory, whose calls fail or hang on demand. */
function leaseStore() {
  let current: Lease | undefined
  let revision = 0
  let fault: Fault

  function write(spec: object): Lease {
    revision += 1
    const metadata = { ...KEY, uid: 'u', resourceVersion: String(revision), generation: 1, creationTimestamp: '' }
    const all: [string, unknown][] = Object.entries({ ...current?.spec, ...spec })
    const merged = Object.fromEntries(all.filter(([, value]) => value !== null))
    return (current = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: merged })
  }
  async function call<T>(answer: () => T): Promise<T> {
    if (fault === 'hang') return new Promise(() => undefined)
    if (fault) throw new StoreError(fault, 'away')
    return answer()
  }
  const store = {
    get: () => call(() => current),
    create: (_kind: unknown, draft: { spec: object }) =>
      call(() => {
        if (current) throw new StoreError('already_exists', 'there')
        return write(draft.spec)
      }),
    mergePatch: (_kind: unknown, _key: unknown, patch: { spec: object }, { resourceVersion }: Preconditions = {}) =>
      call(() => {
        if (resourceVersion !== undefined && resourceVersion !== current?.metadata.resourceVersion)
          throw new StoreError('conflict', 'changed')
        return write(patch.spec)
      }),
  }
  return {
    store: store as unknown as Store,
    holder: () => current?.spec.holderIdentity,
    write,
    fail(next: Fault) {
      fault = next
    },
  }
}

/** A candidate in virtual time. `lead` waits for its signal. */
function candidate(store: Store, clock: VirtualClock, identity: string) {
  const stop = new AbortController()
  const election = createLeaderElection({ store, lease: KEY, identity, log, clock, ...TIMES })
  const seen: string[] = []
  const finish = Promise.withResolvers<undefined>()
  async function lead(signal: AbortSignal): Promise<void> {
    seen.push('leader')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    seen.push('aborted')
    await finish.promise
  }
  const run = election.run(lead, stop.signal).then(
    () => 'over',
    (error: unknown) => (error as { code?: string }).code,
  )
  return { election, seen, run, stop: () => stop.abort(), finish: () => finish.resolve(undefined) }
}

test('one of two candidates becomes and stays leader', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const first = candidate(lease.store, clock, 'first')
  await clock.advance(0)
  const second = candidate(lease.store, clock, 'second')
  await clock.advance(60_000)
  expect([first.election.isLeader(), second.election.isLeader()]).toEqual([true, false])
})

test('the lease of a dead leader can be taken when it has expired, not before', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  lease.write({ holderIdentity: 'dead', leaseDurationSeconds: 12 })
  const heir = candidate(lease.store, clock, 'heir')
  await clock.advance(11_999)
  expect(heir.election.isLeader()).toBe(false)
  await clock.advance(1)
  expect(heir.election.isLeader()).toBe(true)
})

test.each(['unavailable', 'hang'] as const)(
  'a leader whose renewals are %s stops before another may become leader',
  async (fault) => {
    const clock = createVirtualClock()
    const lease = leaseStore()
    const leader = candidate(lease.store, clock, 'leader')
    await clock.advance(1_999)
    lease.fail(fault)
    await clock.advance(6_000)
    expect(leader.election.isLeader()).toBe(true)
    await clock.advance(1)
    expect(leader.election.isLeader()).toBe(false)
    expect(await leader.run).toBe('lease_lost')
    expect(leader.seen).toEqual(['leader', 'aborted'])
  },
)

test('a leader survives renewals that fail for a while', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const leader = candidate(lease.store, clock, 'leader')
  await clock.advance(2_000)
  lease.fail('unavailable')
  await clock.advance(6_000)
  lease.fail(undefined)
  await clock.advance(60_000)
  expect(leader.election.isLeader()).toBe(true)
})

test('a leader loses a lease that another took at the next renewal, but not one with a new label', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const leader = candidate(lease.store, clock, 'leader')
  await clock.advance(1_000)
  lease.write({})
  await clock.advance(10_000)
  expect(leader.election.isLeader()).toBe(true)
  lease.write({ holderIdentity: 'usurper' })
  await clock.advance(2_000)
  expect(leader.election.isLeader()).toBe(false)
  expect(await leader.run).toBe('lease_lost')
  expect(lease.holder()).toBe('usurper')
})

test('a stopped leader keeps the lease until its work has ended, then releases it to another at once', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const leader = candidate(lease.store, clock, 'leader')
  await clock.advance(1_000)
  const heir = candidate(lease.store, clock, 'heir')
  await clock.advance(1_000)
  leader.stop()
  await clock.advance(30_000)
  expect([leader.election.isLeader(), lease.holder()]).toEqual([true, 'leader'])
  leader.finish()
  await settle()
  expect(await leader.run).toBe('over')
  expect([leader.election.isLeader(), lease.holder()]).toEqual([false, undefined])
  await clock.advance(1_000)
  expect(heir.election.isLeader()).toBe(true)
})

test('a stopped candidate ends without leadership', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  lease.write({ holderIdentity: 'other', leaseDurationSeconds: 12 })
  const waiting = candidate(lease.store, clock, 'waiting')
  await clock.advance(5_000)
  waiting.stop()
  await clock.advance(0)
  expect(await waiting.run).toBe('over')
  expect([waiting.seen, lease.holder()]).toEqual([[], 'other'])
})

test('writableMs ends shortly before another may become leader, and is 0 after the loss', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const { election, stop, run } = candidate(lease.store, clock, 'me')
  expect([election.writableMs(), election.knowsHolder()]).toEqual([0, false])
  await clock.advance(0)
  expect([election.writableMs(), election.knowsHolder()]).toEqual([11_000, true])
  lease.fail('unavailable')
  await clock.advance(7_999)
  expect(election.writableMs()).toBe(3_001)
  await clock.advance(1)
  expect(election.writableMs()).toBe(0)
  stop()
  await run
})

test('a candidate that cannot reach the API server does not know the holder', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  lease.fail('unavailable')
  const { election, stop, run } = candidate(lease.store, clock, 'me')
  await clock.advance(5_000)
  expect(election.knowsHolder()).toBe(false)
  stop()
  await clock.advance(0)
  await run
})

/** A Kubernetes client that records its requests and answers 404. */
function recordingClient() {
  const requests: ApiRequest[] = []
  const client = {
    request: (request: ApiRequest) => {
      requests.push(request)
      return Promise.resolve({ status: 404, body: { kind: 'Status', reason: 'NotFound', message: 'not found', code: 404 } })
    },
  } as KubernetesClient
  return { client, writes: () => requests.filter(({ method }) => method !== 'GET') }
}

test('the fenced store sends writes only while its process is leader, each within the time left, and always reads', async () => {
  const clock = createVirtualClock()
  const lease = leaseStore()
  const { election, run } = candidate(lease.store, clock, 'me')
  const { client, writes } = recordingClient()
  const fenced = createFencedStore(client, { election, fieldManager: 'test' })
  const write = () => fenced.mergePatch(Lease, KEY, { spec: { leaseTransitions: 1 } })
  const rejected = { code: 'unavailable' }
  const answered = { code: 'not_found' }
  await expect(write()).rejects.toMatchObject(rejected)
  await clock.advance(0)
  await expect(write()).rejects.toMatchObject(answered)
  lease.fail('unavailable')
  await clock.advance(7_999)
  await expect(write()).rejects.toMatchObject(answered)
  await clock.advance(1)
  await expect(write()).rejects.toMatchObject(rejected)
  expect(writes().map(({ timeoutMs }) => timeoutMs)).toEqual([11_000, 3_001])
  expect(await fenced.get(Lease, KEY)).toBeUndefined()
  expect(await run).toBe('lease_lost')
})
