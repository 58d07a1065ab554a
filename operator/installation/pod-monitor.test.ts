import { expect, test } from 'vitest'
import type { ApiRequest } from '../../store/kubernetes/client.ts'
import { createLines } from '../../test/support/api/http-app.ts'
import { keepPodMonitor, podMonitorOf } from './pod-monitor.ts'

const SETTINGS = { enabled: true, interval: '30s', labels: { release: 'prometheus' } }
const PRESENT = { ...podMonitorOf(SETTINGS), metadata: { ...podMonitorOf(SETTINGS).metadata, uid: 'u', generation: 3 } }

interface Answer {
  readonly status: number
  readonly body?: unknown
}

/** Keeps the PodMonitor for one comparison, with this answer to each request. */
async function keep({ status, body = { kind: 'Status', code: status } }: Answer, settings = SETTINGS) {
  const requests: ApiRequest[] = []
  const { log, lines } = createLines()
  const client = {
    async request(request: ApiRequest) {
      requests.push(request)
      return { status, body }
    },
  }
  await using kept = await keepPodMonitor({ client, settings, log })
  return { kept, requests, lines, methods: requests.map(({ method }) => method) }
}

test('the PodMonitor selects the exporters of all servers, and labels their metrics with the database', () => {
  const { metadata, spec } = podMonitorOf(SETTINGS)
  expect(metadata).toMatchObject({ namespace: 'mooring-shared', labels: { release: 'prometheus' } })
  expect(spec.selector.matchLabels).toMatchObject({ 'app.kubernetes.io/component': 'database-server' })
  expect(spec.podMetricsEndpoints).toMatchObject([
    {
      ...{ port: 'metrics', interval: '30s' },
      relabelings: [
        { sourceLabels: ['__meta_kubernetes_pod_annotation_mooring_dev_database_namespace'], targetLabel: 'mooring_namespace' },
        { sourceLabels: ['__meta_kubernetes_pod_annotation_mooring_dev_database'], targetLabel: 'mooring_database' },
      ],
    },
  ])
})

test('metrics whose labels tenants choose are dropped, and the samples of an exporter are bounded', () => {
  const { sampleLimit, podMetricsEndpoints } = podMonitorOf(SETTINGS).spec
  expect(sampleLimit).toBe(10_000)
  const dropped = podMetricsEndpoints.flatMap(({ metricRelabelings }) => metricRelabelings)
  expect(dropped).toEqual([{ action: 'drop', sourceLabels: ['__name__'], regex: 'pg_stat_activity_.*' }])
})

test.each([
  { does: 'a missing PodMonitor is applied', answer: { status: 404 }, methods: ['GET', 'PATCH'] },
  { does: 'an unchanged PodMonitor is not written', answer: { status: 200, body: PRESENT }, methods: ['GET'] },
  {
    does: 'a PodMonitor that was changed by hand is applied again',
    answer: { status: 200, body: { ...PRESENT, spec: { ...PRESENT.spec, podMetricsEndpoints: [] } } },
    methods: ['GET', 'PATCH'],
  },
])('$does', async ({ answer, methods }) => {
  const { methods: sent, lines } = await keep(answer)
  expect(sent).toEqual(methods)
  expect(lines).toEqual([])
})

test.each([
  { does: 'the one of the operator is deleted', body: PRESENT, methods: ['GET', 'DELETE'] },
  { does: 'one of another owner is kept', body: { ...PRESENT, metadata: { name: 'mooring-databases' } }, methods: ['GET'] },
])('where the PodMonitor is disabled, $does', async ({ body, methods }) => {
  expect((await keep({ status: 200, body }, { ...SETTINGS, enabled: false })).methods).toEqual(methods)
})

test('an error is logged, and does not throw', async () => {
  const { lines } = await keep({ status: 403 })
  expect(lines.map(({ msg }) => msg)).toEqual(['the PodMonitor of the exporters could not be compared or written; retrying'])
})
