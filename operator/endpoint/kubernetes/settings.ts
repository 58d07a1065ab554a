import { z } from 'zod'
import { strictDeep } from '../../../shared/strict.ts'

const texts = z.record(z.string(), z.string())
const quantities = z.record(z.string(), z.union([z.string(), z.number()]))
const objects = z.array(z.record(z.string(), z.unknown()))

/** How edges run as pods: the chart's value `edges`. */
const Settings = z.object({
  image: z.string().min(1),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  /** Names of the Secrets with which the image is pulled. */
  pullSecrets: z.array(z.string()).default([]),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  /** Heap of Node.js in MiB. */
  heapMiB: z.int().min(64).default(512),
  resources: z.object({ requests: quantities.optional(), limits: quantities.optional() }).default({}),
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

const RULE = 'a JSON object as the chart makes it of its value edges'

/** Rule of the setting: JSON in one line. */
export const EdgePods = z.string().transform((text, context): EdgePodSettings => {
  const parsed = strictDeep(Settings).safeParse(jsonOf(text))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  context.addIssue({ code: 'custom', message: issue ? `${RULE} (${[...issue.path, issue.message].join(' ')})` : RULE })
  return z.NEVER
})

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
