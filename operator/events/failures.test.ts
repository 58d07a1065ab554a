import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import type { Condition } from '../../crds/kind.ts'
import { Namespace } from '../../crds/core.ts'
import { InstanceReason, SharedInstance } from '../../crds/shared-instance.ts'
import { TunnelReason } from '../../crds/tunnel.ts'
import { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { createCacheSet } from '../../store/cache.ts'
import { StoreError } from '../../store/port.ts'
import { sharedInstance, tunnel, tunnelEndpoint } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { failuresOf, reportFailures, reporterOf } from './failures.ts'
import type { Failure } from './events.ts'

const condition = (status: Condition['status'], reason: string, message = 'why'): Condition => ({
  ...{ type: 'Ready', status, reason, message },
  lastTransitionTime: '2030-01-01T00:00:00Z',
})

test.each([
  { does: 'a claimed database is no failure', ready: condition('True', InstanceReason.Claimed), is: undefined },
  { does: 'a database that is being claimed is no failure', ready: condition('False', InstanceReason.Claiming), is: undefined },
  {
    does: 'an instance that waits for its server is no failure',
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
