import { z } from 'zod'
import { chartSetting, PodLogLevel, PodResources, PullPolicy, texts } from '../../kubernetes/chart-setting.ts'

const objects = z.array(z.record(z.string(), z.unknown()))

/** How edges run as pods: the chart's value `edges`. */
const Settings = z.object({
  image: z.string().min(1),
  pullPolicy: PullPolicy,
  /** Names of the Secrets with which the image is pulled. */
  pullSecrets: z.array(z.string()).default([]),
  logLevel: PodLogLevel,
  /** Heap of Node.js in MiB. */
  heapMiB: z.int().min(64).default(512),
  resources: PodResources,
  podAnnotations: texts.default({}),
  nodeSelector: texts.default({}),
  tolerations: objects.default([]),
  /** Affinity of a pod. When empty, edges are spread over nodes. */
  affinity: z.record(z.string(), z.unknown()).default({}),
  priorityClassName: z.string().default(''),
  extraEnv: objects.default([]),
  service: z
    .object({
      type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP'),
      externalTrafficPolicy: z.enum(['Local', 'Cluster']).default('Local'),
      annotations: texts.default({}),
      loadBalancerClass: z.string().default(''),
      loadBalancerSourceRanges: z.array(z.string()).default([]),
    })
    .prefault({}),
  /** Whether a NetworkPolicy closes the mesh port to all but edges. */
  networkPolicy: z.boolean().default(true),
  /** Whether the journal is a PostgreSQL outside; edges do not wait for its login. */
  journalOutside: z.boolean().default(false),
})
export type EdgePodSettings = z.output<typeof Settings>

/** Rule of the setting. */
export const EdgePods = chartSetting(Settings, 'edges')
