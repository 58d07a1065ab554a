import { randomBytes } from 'node:crypto'
import { stringify } from 'yaml'
import { z } from 'zod'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import type { Kubernetes } from './commands.ts'
import { KUBECTL_WAIT } from '../../support/patience.ts'

/** Namespace and labels of the pods that may read the metrics of servers: the chart's defaults of `monitoring.prometheus`. */
const NAMESPACE = 'monitoring'
const LABELS = { 'app.kubernetes.io/name': 'prometheus' }
const IMAGE = 'docker.io/prom/prometheus:debian'
const PORT = 9090

/** Fields of a PodMonitor that this file reads in place of the Prometheus operator. */
export const PodMonitor = z.object({
  spec: z.object({
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    podMetricsEndpoints: z.tuple([
      z.object({
        port: z.string(),
        relabelings: z.array(z.object({ action: z.string(), sourceLabels: z.array(z.string()), targetLabel: z.string() })),
      }),
    ]),
  }),
})
export type PodMonitor = z.output<typeof PodMonitor>

/** Value of one time series, with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Prometheus in a pod of its own. */
export interface Prometheus extends AsyncDisposable {
  /** Evaluates an expression now. */
  query(expression: string): Promise<readonly Sample[]>
}

const Answer = z.object({
  data: z.object({
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })),
  }),
})

/** Creates the namespace of Prometheus, unless there is one, until disposal. */
export async function openMonitoringNamespace({ kubectl }: Kubernetes): Promise<AsyncDisposable> {
  const made = new AsyncDisposableStack()
  if ((await kubectl(['get', 'namespace', NAMESPACE, '--ignore-not-found', '--output', 'name'])) === '') {
    await kubectl(['create', 'namespace', NAMESPACE])
    made.defer(async () => {
      await kubectl(['delete', 'namespace', NAMESPACE])
    })
  }
  return made
}

/** Starts a Prometheus that scrapes what a PodMonitor in mooring-shared selects now, every 5 s. */
export async function startPrometheus({ kubectl }: Kubernetes, podMonitor: PodMonitor): Promise<Prometheus> {
  await using made = new AsyncDisposableStack()
  const name = `prometheus-${randomBytes(3).toString('hex')}`
  for (const object of objectsOf(name, await configurationOf(kubectl, podMonitor))) {
    await kubectl(['apply', '--filename', '-'], object)
    made.defer(async () => {
      await kubectl(['delete', object.kind, name, '--namespace', NAMESPACE, '--ignore-not-found', '--wait=false'])
    })
  }
  await kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--namespace', NAMESPACE, KUBECTL_WAIT])
  const ownership = made.move()
  return {
    async query(expression) {
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}:${PORT}/proxy/api/v1/query?query=${encodeURIComponent(expression)}`
      const { data } = Answer.parse(JSON.parse(await kubectl(['get', '--raw', path])))
      return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }))
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

function objectsOf(name: string, configuration: object): readonly { readonly kind: string }[] {
  const metadata = { name, namespace: NAMESPACE }
  return [
    {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata },
      ...{ data: { 'prometheus.yml': stringify(configuration) } },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, labels: LABELS } },
      ...{
        spec: {
          securityContext: { runAsUser: 65_534, fsGroup: 65_534 },
          containers: [
            {
              ...{ name: 'prometheus', image: IMAGE, imagePullPolicy: 'IfNotPresent' },
              args: ['--config.file=/etc/prometheus/prometheus.yml', '--storage.tsdb.path=/data'],
              readinessProbe: { httpGet: { path: '/-/ready', port: PORT }, periodSeconds: 1 },
              volumeMounts: [
                { name: 'config', mountPath: '/etc/prometheus' },
                { name: 'data', mountPath: '/data' },
              ],
            },
          ],
          volumes: [
            { name: 'config', configMap: { name } },
            { name: 'data', emptyDir: {} },
          ],
        },
      },
    },
  ]
}

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ annotations: z.record(z.string(), z.string()).default({}) }),
      spec: z.object({
        containers: z.array(
          z.object({ ports: z.array(z.object({ name: z.string().optional(), containerPort: z.int() })).default([]) }),
        ),
      }),
      status: z.object({ podIP: z.string().default('') }),
    }),
  ),
})

/**
 * Returns a configuration with the present targets of a PodMonitor. The Prometheus operator would configure discovery in Kubernetes, which
 * Debian's build of Prometheus lacks.
 */
async function configurationOf(kubectl: Kubernetes['kubectl'], { spec }: PodMonitor): Promise<object> {
  const [{ port, relabelings }] = spec.podMetricsEndpoints
  const selector = Object.entries(spec.selector.matchLabels).map(([label, value]) => `${label}=${value}`)
  const list = ['get', 'pods', '--namespace', SHARED_NAMESPACE, '--selector', selector.join(','), '--output', 'json']
  const { items } = Pods.parse(JSON.parse(await kubectl(list)))
  const targets = items.flatMap(({ metadata: { annotations }, spec: { containers }, status: { podIP } }) => {
    const meta = new Map(
      Object.entries(annotations).map(([name, value]) => [`${META}${name.replaceAll(/[^a-zA-Z0-9_]/g, '_')}`, value]),
    )
    const labels = relabelings.map(
      ({ sourceLabels: [source = ''], targetLabel }) => [targetLabel, meta.get(source) ?? ''] as const,
    )
    const ports = containers.flatMap((container) => container.ports).filter(({ name }) => name === port)
    return ports.map(({ containerPort }) => ({ targets: [`${podIP}:${containerPort}`], labels: Object.fromEntries(labels) }))
  })
  return {
    global: { scrape_interval: '5s', scrape_timeout: '5s' },
    scrape_configs: [{ job_name: 'databases', static_configs: targets }],
  }
}

const META = '__meta_kubernetes_pod_annotation_'
