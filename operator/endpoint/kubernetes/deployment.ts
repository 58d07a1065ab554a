import { createHash } from 'node:crypto'
import type { V1Affinity, V1Container, V1Deployment, V1EnvVar, V1PodSpec } from '@kubernetes/client-node'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { EDGE_PATHS, EDGE_PORTS, edgeName, hostKeysSecret, meshSecret } from '../../../shared/edge-objects.ts'
import type { Plain } from '../../kubernetes/plain.ts'
import { metadataOf, selectorOf } from './names.ts'
import type { EdgePodSettings } from './settings.ts'

/** Hash of what an edge takes from its endpoint when it starts: a change of it replaces the pods one by one. */
export const SPEC_ANNOTATION = 'mooring.dev/endpoint-spec'
/** Uid of the service account: the tokens of pods that began under another are worth nothing. */
export const ACCOUNT_ANNOTATION = 'mooring.dev/service-account'
/** Secret with which edges write to the journal. */
export const JOURNAL_SECRET = 'journal-edge'

/** New visitors go elsewhere before an edge begins to stop. */
const LINGER_S = 2
/** Requests under way finish, and clients are told to come back one after the other. */
const GRACE_S = 60
/** The journal's spool (256 MiB) and a snapshot of what is served. */
const DATA_MIB = 512
const USER = 1_000

/**
 * The edges of one endpoint. Nothing in a pod depends on the version of the operator: an upgrade restarts none of them.
 * @param account uid of their service account
 */
export function deploymentOf(endpoint: TunnelEndpoint, settings: EdgePodSettings, account: string): Plain<V1Deployment> {
  const { name } = endpoint.metadata
  const selector = selectorOf(name)
  const annotations = { ...settings.podAnnotations, [SPEC_ANNOTATION]: hashOf(endpoint), [ACCOUNT_ANNOTATION]: account }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(endpoint, edgeName(name)),
    spec: {
      replicas: endpoint.spec.replicas,
      revisionHistoryLimit: 3,
      // Sessions move when an edge goes: one at a time, and none before another is there.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      selector: { matchLabels: selector },
      template: { metadata: { labels: selector, annotations }, spec: podSpec(endpoint, settings) },
    },
  }
}

/** Pure. */
function hashOf({ spec: { domain, publicHttpPort, publicHttpsPort, proxyProtocol } }: TunnelEndpoint): string {
  const taken = JSON.stringify([domain, publicHttpPort, publicHttpsPort, proxyProtocol?.trustedCIDRs ?? []])
  return createHash('sha256').update(taken).digest('hex').slice(0, 16)
}

function podSpec({ metadata: { name } }: TunnelEndpoint, settings: EdgePodSettings): Plain<V1PodSpec> {
  const { pullSecrets, priorityClassName, nodeSelector, tolerations, journalOutside } = settings
  return {
    serviceAccountName: edgeName(name),
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_S,
    securityContext: {
      ...{ runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, fsGroup: USER },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(pullSecrets.length > 0 && { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
    ...(priorityClassName !== '' && { priorityClassName }),
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector: { ...nodeSelector } }),
    ...(tolerations.length > 0 && { tolerations: [...tolerations] }),
    affinity: affinityOf(name, settings),
    containers: [containerOf(name, settings)],
    volumes: [
      secret('host-keys', hostKeysSecret(name)),
      // The authority's own key stays with the operator.
      secret('mesh', meshSecret(name), { keys: ['ca.crt', 'tls.crt', 'tls.key'] }),
      // Of a journal outside it is made when that has answered: visitors need not wait for it.
      secret('journal', JOURNAL_SECRET, { optional: journalOutside }),
      { name: 'data', emptyDir: { sizeLimit: `${DATA_MIB}Mi` } },
    ],
  }
}

interface SecretOptions {
  /** All of them by default. */
  readonly keys?: readonly string[]
  /** Whether the pod starts without it; its files come when it does. */
  readonly optional?: boolean
}

/** Made by the operator: until then the pod waits, unless it is optional. */
const secret = (name: string, secretName: string, { keys, optional = false }: SecretOptions = {}) => ({
  name,
  secret: {
    ...{ secretName, defaultMode: 0o440 },
    ...(keys && { items: keys.map((key) => ({ key, path: key })) }),
    ...(optional && { optional }),
  },
})

function affinityOf(name: string, { affinity }: EdgePodSettings): Plain<V1Affinity> {
  if (Object.keys(affinity).length > 0) return affinity
  const podAffinityTerm = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: selectorOf(name) } }
  return { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }] } }
}

function containerOf(name: string, settings: EdgePodSettings): Plain<V1Container> {
  const { image, pullPolicy, heapMiB, logLevel, extraEnv, resources } = settings
  const ready = { httpGet: httpGet('/readyz'), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 }
  return {
    name: 'edge',
    image,
    imagePullPolicy: pullPolicy,
    args: ['edge/main.ts'],
    ports: Object.entries(EDGE_PORTS).map(([port, containerPort]) => ({ name: port, containerPort, protocol: 'TCP' })),
    env: [
      { name: 'NODE_OPTIONS', value: `--max-old-space-size=${heapMiB}` },
      { name: 'MOORING_ENDPOINT', value: name },
      { name: 'MOORING_LOG_LEVEL', value: logLevel },
      { name: 'MOORING_LOG_FORMAT', value: 'json' },
      fieldOf('POD_NAME', 'metadata.name'),
      ...(extraEnv as unknown as Plain<V1EnvVar>[]),
    ],
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    resources: plainResources(resources),
    startupProbe: { httpGet: httpGet('/healthz'), periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { httpGet: httpGet('/healthz'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    readinessProbe: ready,
    lifecycle: { preStop: { sleep: { seconds: LINGER_S } } },
    // Why it ended is in the pod's status then, where it is looked for.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'host-keys', mountPath: EDGE_PATHS.hostKeys, readOnly: true },
      { name: 'mesh', mountPath: EDGE_PATHS.mesh, readOnly: true },
      { name: 'journal', mountPath: EDGE_PATHS.journal, readOnly: true },
      { name: 'data', mountPath: EDGE_PATHS.data },
    ],
  }
}

const httpGet = (path: string) => ({ path, port: 'metrics' })

const fieldOf = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })

/** A quantity may be a number in YAML. */
function plainResources({ requests = {}, limits = {} }: EdgePodSettings['resources']) {
  const texts = (quantities: Readonly<Record<string, string | number>>) =>
    Object.fromEntries(Object.entries(quantities).map(([what, much]) => [what, String(much)]))
  return { requests: texts(requests), limits: texts(limits) }
}
