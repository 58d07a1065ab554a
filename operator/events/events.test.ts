import { pino } from 'pino'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import fc from 'fast-check'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { ApiRequest, KubernetesClient } from '../../store/kubernetes/client.ts'
import { type Failure, createKubernetesEvents, type BudgetLimits, createEventBudget } from './events.ts'

const MINUTE = 60_000

/** Events over a client that records its requests, with a clock that the test advances. */
function record(status = 201) {
  const sent: ApiRequest[] = []
  const time = { at: Date.UTC(2030, 0, 1) }
  const client: Pick<KubernetesClient, 'request'> = {
    request: (request) => {
      sent.push(request)
      return Promise.resolve({ status, body: {} })
    },
  }
  const registry = new Registry()
  const events = createKubernetesEvents({
    client: client as KubernetesClient,
    ...{ instance: 'operator-1', registry, log: pino({ level: 'silent' }), now: () => new Date(time.at) },
  })
  return { events, sent, time, registry }
}

function failure(about: { name?: string; reason?: string; note?: string } = {}): Failure {
  const { name = 'one', reason = 'Crashed', note = 'it crashed' } = about
  return {
    kind: SharedInstance,
    metadata: { name, namespace: 'acme--prod', uid: `uid-of-${name}`, resourceVersion: '7' },
    reason,
    note,
  }
}

test('a failure becomes a Warning beside its object', () => {
  const { events, sent } = record()
  events.failure(failure())
  expect(sent).toMatchObject([
    {
      method: 'POST',
      path: '/apis/events.k8s.io/v1/namespaces/acme--prod/events',
      body: {
        type: 'Warning',
        reason: 'Crashed',
        note: 'it crashed',
        eventTime: '2030-01-01T00:00:00.000000Z',
        reportingInstance: 'operator-1',
        regarding: { apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', name: 'one', uid: 'uid-of-one' },
      },
    },
  ])
})

test('the same failure again counts up a series, written once a minute', () => {
  const { events, sent, time } = record()
  for (let i = 0; i < 100; i++) {
    events.failure(failure())
    time.at += 1_000
  }
  const [first, ...more] = sent
  expect(more).toMatchObject([{ method: 'PATCH', body: { series: { count: 61 } } }])
  expect(more[0]?.path).toBe(`${first?.path}/${(first?.body as { metadata: { name: string } }).metadata.name}`)
})

test('after ten quiet minutes the same failure is an event of its own', () => {
  const { events, sent, time } = record()
  events.failure(failure())
  time.at += 10 * MINUTE
  events.failure(failure())
  expect(sent.map(({ method }) => method)).toEqual(['POST', 'POST'])
})

test('events about many failures at once are bounded, and dropped ones are counted', async () => {
  const { events, sent, registry } = record()
  for (let i = 0; i < 1_000; i++) events.failure(failure({ name: `n${i}` }))
  expect(sent.length).toBeLessThanOrEqual(100)
  expect(await registry.getSingleMetricAsString('mooring_events_total')).toContain(`result="dropped"} ${1_000 - sent.length}`)
})

test('names and notes keep to the bounds of Kubernetes', () => {
  const { events, sent } = record()
  events.failure(failure({ name: `${'a'.repeat(199)}.${'b'.repeat(53)}`, note: 'x'.repeat(5_000) }))
  const { metadata, note } = sent[0]?.body as { metadata: { name: string }; note: string }
  expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
  expect(metadata.name.length).toBeLessThanOrEqual(253)
  expect(note.length).toBe(1_024)
})

test('an error of the client is not thrown', async () => {
  const { events, registry } = record(403)
  events.failure(failure())
  await new Promise(setImmediate)
  expect(await registry.getSingleMetricAsString('mooring_events_total')).toContain('result="dropped"} 1')
})

const LIMITS: BudgetLimits = {
  perObject: { burst: 2, refillMs: 1_000 },
  overall: { burst: 5, refillMs: 100 },
  objects: 3,
}

test('an object has its burst, and then one for each refill', () => {
  const mayWrite = createEventBudget(LIMITS)
  expect([0, 0, 0, 500, 1_000, 1_000].map((now) => mayWrite('a', now))).toEqual([true, true, false, false, true, false])
})

test('an object with many events does not use up the budget of others', () => {
  const mayWrite = createEventBudget(LIMITS)
  for (let i = 0; i < 100; i++) mayWrite('loud', 0)
  expect(mayWrite('quiet', 0)).toBe(true)
})

test('all objects together have a budget', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(50)), { maxLength: 300 }), (calls) => {
      const mayWrite = createEventBudget(LIMITS)
      let now = 0
      let written = 0
      for (const [object, step] of calls) {
        now += step
        if (mayWrite(`${object}`, now)) written += 1
      }
      expect(written).toBeLessThanOrEqual(LIMITS.overall.burst + now / LIMITS.overall.refillMs)
    }),
  )
})
