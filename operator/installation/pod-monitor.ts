import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { z } from 'zod'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { ApiResponse, KubernetesClient } from '../../store/kubernetes/client.ts'
import { every } from '../../shared/timers.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'
import { mergePatch } from '../../store/port.ts'
import { EXPORTER_PORT } from '../server/kubernetes/exporter/containers.ts'
import type { ExporterPodSettings } from '../server/kubernetes/exporter/settings.ts'
import { OWNERSHIP } from '../server/kubernetes/manifests.ts'
import { podAnnotations } from '../server/kubernetes/stateful-set.ts'

/** Name of the PodMonitor, which is a kind of the Prometheus operator (docs/dedicated.md, "Exporters"). */
const NAME = 'mooring-databases'
const PATH = `/apis/monitoring.coreos.com/v1/namespaces/${SHARED_NAMESPACE}/podmonitors/${NAME}`
const KIND = { kind: { kind: 'PodMonitor', plural: 'podmonitors', custom: false } }
/** Maximum number of samples of one exporter. The most that one has without a tenant's doing is about 2,500. */
const MOST_SAMPLES = 10_000
/**
 * Metrics of postgres_exporter with the label `application_name`. Each session of a tenant may set another one for each scrape, and each one would
 * be a new time series in the memory of Prometheus.
 */
const OF_CLIENTS = 'pg_stat_activity_.*'
/** Interval of the comparison, in milliseconds. A cluster that gets the kind later gets the object within this time. */
const POLL_MS = 30_000

/** Returns the PodMonitor that makes Prometheus read the exporters of all servers. Pure. */
export function podMonitorOf({ interval, labels }: ExporterPodSettings['podMonitor']) {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PodMonitor',
    metadata: { name: NAME, namespace: SHARED_NAMESPACE, labels: { ...labels, ...OWNERSHIP } },
    spec: {
      selector: { matchLabels: OWNERSHIP },
      sampleLimit: MOST_SAMPLES,
      podMetricsEndpoints: [
        {
          port: EXPORTER_PORT,
          interval,
          relabelings: [
            relabeling(podAnnotations.databaseNamespace, 'mooring_namespace'),
            relabeling(podAnnotations.database, 'mooring_database'),
          ],
          metricRelabelings: [{ action: 'drop', sourceLabels: ['__name__'], regex: OF_CLIENTS }],
        },
      ],
    },
  }
}

/** Returns the rule that copies an annotation of the pod to a label of its metrics. Prometheus replaces other characters by underscores. */
const relabeling = (annotation: string, targetLabel: string) => ({
  action: 'replace',
  sourceLabels: [`__meta_kubernetes_pod_annotation_${annotation.replaceAll(/[^a-zA-Z0-9_]/g, '_')}`],
  targetLabel,
})

const Found = z.looseObject({ metadata: z.looseObject({ labels: z.record(z.string(), z.string()).default({}) }) })

export interface PodMonitorDeps {
  readonly client: Pick<KubernetesClient, 'request'>
  readonly settings: ExporterPodSettings['podMonitor']
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Keeps the PodMonitor of the exporters as desired in a cluster that has the kind: compares it every 30 s, and creates, repairs or, when disabled,
 * deletes it. A PodMonitor of this name that the operator did not create is not deleted. Dispose of the result to stop.
 */
export async function keepPodMonitor({ client, settings, log }: PodMonitorDeps): Promise<AsyncDisposable> {
  const desired = podMonitorOf(settings)

  async function send(
    partial: Pick<Parameters<typeof client.request>[0], 'method' | 'query' | 'body' | 'contentType'>,
  ): Promise<ApiResponse> {
    const request = { ...partial, path: PATH, idempotent: true }
    const answer = await client.request(request)
    // The answer is also 404 when the cluster does not have the kind.
    if (answer.status >= 300 && answer.status !== 404) throw storeErrorOf(answer, { ...KIND, name: NAME, request })
    return answer
  }

  async function keep(): Promise<void> {
    const { status, body } = await send({ method: 'GET' })
    if (!settings.enabled) {
      if (status === 200 && isOwn(body)) await send({ method: 'DELETE' })
      return
    }
    // A write without a change is invisible in the object, but not in the audit log of the cluster.
    if (status === 200 && isDeepStrictEqual(mergePatch(body, desired), body)) return
    await send({
      method: 'PATCH',
      body: desired,
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'mooring-operator', force: 'true' },
    })
  }

  const tried = () =>
    keep().catch((error: unknown) => {
      log.warn({ err: error }, 'the PodMonitor of the exporters could not be compared or written; retrying')
    })
  await tried()
  return every(POLL_MS, tried)
}

/** Returns whether the operator created the object, by its labels. */
function isOwn(body: unknown): boolean {
  const { labels = {} } = Found.safeParse(body).data?.metadata ?? {}
  return Object.entries(OWNERSHIP).every(([label, value]) => labels[label] === value)
}
