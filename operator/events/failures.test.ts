import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import type { Condition } from '../../crds/kind.ts'
import { Namespace } from '../../crds/core.ts'
import { DELETION_HELD, UPDATE_HELD } from '../../crds/database-server.ts'
import { EXTENSIONS_INSTALLED, InstanceReason, SharedInstance } from '../../crds/shared-instance.ts'
import { HEADERS_USABLE, HOSTNAME_KEPT, TunnelReason } from '../../crds/tunnel.ts'
import { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { createCacheSet } from '../../store/cache.ts'
import { type Key, StoreError } from '../../store/port.ts'
import { databaseServer, sharedInstance, tunnel, tunnelEndpoint } from '../../test/builders/resources.ts'
import { createVirtualClock } from '../../test/support/clocks.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { failuresOf, LATE_MS, reportFailures, reporterOf } from './failures.ts'
import type { Failure } from './events.ts'

const condition = (status: Condition['status'], reason: string, message = 'why'): Condition => ({
  ...{ type: 'Ready', status, reason, message },
  lastTransitionTime: '2030-01-01T00:00:00Z',
})

test.each([
  { does: 'a claimed database is no failure', ready: condition('True', InstanceReason.Claimed), is: undefined },
  { does: 'a database that is being claimed is no failure', ready: condition('False', InstanceReason.Claiming), is: undefined },
  {
    does: 'an instance that waits for its server is no failure, unless it lasts',
    ready: condition('False', InstanceReason.WaitingForServer),
    is: undefined,
  },
  {
    does: 'an instance above the quota is a failure',
    ready: condition('False', InstanceReason.QuotaExceeded, 'too many'),
    is: { reason: 'QuotaExceeded', note: 'too many' },
  },
  {
    does: 'a missing database is a failure',
    ready: condition('False', InstanceReason.DatabaseMissing, 'it is gone'),
    is: { reason: 'DatabaseMissing', note: 'it is gone' },
  },
])('$does', ({ ready, is }) => {
  expect(failuresOf(sharedInstance({ status: { conditions: [ready] } }))).toEqual(is ? [is] : [])
})

test.each([
  { does: 'an extension that cannot be installed is a failure', type: EXTENSIONS_INSTALLED, reason: 'ExtensionUnsupported' },
  { does: 'a hostname that a restored tunnel does not get is a failure', type: HOSTNAME_KEPT, reason: 'InvalidMark' },
  { does: 'a header value that is missing is a failure', type: HEADERS_USABLE, reason: 'SecretMissing' },
  { does: 'a deletion that waits for instances is a failure', type: DELETION_HELD, reason: 'InstancesLeft' },
  { does: 'a volume that cannot grow is a failure', type: UPDATE_HELD, reason: 'StorageNotExpandable' },
  { does: 'a server that is being replaced is no failure', type: UPDATE_HELD, reason: 'Updating', is: [] },
])('$does', ({ type, reason, is = [reason] }) => {
  const conditions = [condition('True', 'Running'), { ...condition('False', reason), type }]
  expect(failuresOf(databaseServer({ status: { conditions } })).map((failure) => failure.reason)).toEqual(is)
})

test.each([
  TunnelReason.QuotaExceeded,
  TunnelReason.UnknownRegion,
  TunnelReason.NoActiveEndpoint,
  TunnelReason.EndpointMissing,
  TunnelReason.EndpointNotServed,
])('a tunnel that is not ready by %s has failed', (reason) => {
  const conditions = [condition('False', reason, 'it is so')]
  expect(failuresOf(tunnel({ status: { conditions } }))).toEqual([{ reason, note: 'it is so' }])
})

test.each([
  condition('False', TunnelReason.DrawingHostname),
  condition('False', TunnelReason.ObtainingCertificate),
  condition('True', TunnelReason.Assigned),
])('a tunnel that says $status and $reason has not failed', (ready) => {
  expect(failuresOf(tunnel({ status: { conditions: [ready], certificate: { status: 'obtaining' } } }))).toEqual([])
})

test.each([
  { status: 'failed', ready: condition('False', TunnelReason.ObtainingCertificate) },
  { status: 'expired', ready: condition('False', TunnelReason.ObtainingCertificate) },
  { status: 'valid', ready: condition('True', TunnelReason.Assigned) },
] as const)('an attempt at a certificate that failed is a failure where the one before is $status', ({ status, ready }) => {
  const certificate = { status, lastError: 'the authority is away', nextAttemptAt: '2030-01-01T00:01:00.000Z' }
  expect(failuresOf(tunnel({ status: { conditions: [ready], certificate } }))).toEqual([
    { reason: 'CertificateFailed', note: 'its certificate could not be obtained: the authority is away' },
  ])
})

test.each([
  { does: 'has failed', ready: condition('False', EndpointReason.UnknownRegion), is: { reason: 'UnknownRegion', note: 'why' } },
  { does: 'has failed', ready: condition('False', EndpointReason.EdgesFailing), is: { reason: 'EdgesFailing', note: 'why' } },
  { does: 'has not', ready: condition('False', EndpointReason.Starting), is: undefined },
  { does: 'has not', ready: condition('True', EndpointReason.Serving), is: undefined },
])('an endpoint that says $ready.reason $does', ({ ready, is }) => {
  expect(failuresOf(tunnelEndpoint({ status: { conditions: [ready] } }))).toEqual(is ? [is] : [])
})

test('a failure is reported once when it appears in a status, and again when it reappears', async () => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const { metadata, spec } = sharedInstance()
  const key = { namespace: 'acme--prod', name: metadata.name }
  await store.create(SharedInstance, { metadata: key, spec })
  const following = createCacheSet({ store, onError: (error) => expect.fail(String(error)) })
  const cache = following.cached(SharedInstance)
  const stopping = new AbortController()
  const running = following.run(stopping.signal)
  await following.synced()
  const told: Failure[] = []
  const stop = reportFailures(cache, { failure: (failure) => void told.push(failure) })
  const become = async (...conditions: Condition[]) => {
    const { metadata } = await store.patchStatus(SharedInstance, key, { conditions })
    const seen = (instance?: SharedInstance) =>
      instance?.metadata.resourceVersion === metadata.resourceVersion ? true : undefined
    await cache.waitFor(key, seen, AbortSignal.timeout(60_000))
  }
  const missing = condition('False', InstanceReason.DatabaseMissing)
  await become(missing)
  await become({ ...missing, observedGeneration: 2 })
  await become(condition('True', InstanceReason.Claimed))
  await become(missing)
  expect(told.map(({ reason, metadata }) => [reason, metadata.name])).toEqual([
    ['DatabaseMissing', key.name],
    ['DatabaseMissing', key.name],
  ])
  stop()
  stopping.abort()
  await running
})

test('a step that lasts a minute is reported once, with the message of that time, and again when the message has changed for a minute', async () => {
  const clock = createVirtualClock()
  const held = settableCache(SharedInstance)
  const { name, namespace } = sharedInstance().metadata
  let changed: (key: Key) => void = () => undefined
  let version = 0
  const onChange = (handler: typeof changed) => {
    changed = handler
    return () => undefined
  }
  const cache = { ...held.cache, onChange }
  const become = (...conditions: Condition[]) => {
    version += 1
    held.put(sharedInstance({ metadata: { resourceVersion: String(version) }, status: { conditions } }))
    changed({ name, namespace })
  }
  const waiting = (message: string) => condition('False', InstanceReason.WaitingForServer, message)
  const told: string[] = []
  become(waiting('no free slot yet'))
  const stop = reportFailures(cache, { failure: ({ reason, note }) => void told.push(`${reason}: ${note}`) }, clock)
  await clock.advance(LATE_MS - 1)
  become(waiting('no server runs'))
  expect(told).toEqual([])
  await clock.advance(LATE_MS)
  expect(told).toEqual(['WaitingForServer: no server runs'])

  become(waiting('no node accepts it'))
  become(waiting('no node accepts it at all'))
  await clock.advance(LATE_MS)
  become(condition('True', InstanceReason.Claimed))
  become(waiting('no free slot yet'))
  become(condition('True', InstanceReason.Claimed))
  await clock.advance(2 * LATE_MS)
  expect(told.slice(1)).toEqual(['WaitingForServer: no node accepts it at all'])
  stop()
})

test.each([
  {
    error: new MooringError('engine_unavailable', 'the server does not answer'),
    note: 'engine_unavailable: the server does not answer',
  },
  { error: new Error('password=hunter2'), note: 'unexpected error: see the log of the operator' },
  { error: new StoreError('conflict', 'another writer was quicker'), note: undefined },
])('$error.name ($error.message) is reported as: $note', ({ error, note }) => {
  const held = settableCache(SharedInstance)
  held.put(sharedInstance())
  const told: Failure[] = []
  const { name, namespace } = sharedInstance().metadata
  reporterOf({ failure: (failure) => void told.push(failure) }, held.cache)({ name, namespace }, error)
  expect(told.map((failure) => failure.note)).toEqual(note === undefined ? [] : [note])
})
