import { createHash } from 'node:crypto'
import type { V1Affinity, V1Container, V1Deployment, V1EnvVar, V1PodSpec } from '@kubernetes/client-node'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { EDGE_PATHS, EDGE_PORTS, edgeName, hostKeysSecret, meshSecret } from '../../../shared/edge-objects.ts'
import { CONFINED } from '../../kubernetes/container.ts'
import type { Plain, Pod } from '../../kubernetes/kinds.ts'
import { metadataOf, selectorOf, type Deployment } from './kinds.ts'
import type { EdgePodSettings } from './settings.ts'
import { podState } from '../../kubernetes/pod-state.ts'
import type { EdgeState } from '../runtime.ts'

/** Hash of the endpoint's fields that an edge reads at its start: a change replaces the pods one by one. */
const SPEC_ANNOTATION = 'mooring.dev/endpoint-spec'
/** Uid of the service account: tokens of pods that started under another account are invalid. */
const ACCOUNT_ANNOTATION = 'mooring.dev/service-account'
/** Secret with which edges write to the journal. */
const JOURNAL_SECRET = 'journal-edge'

/** Seconds between the removal of a pod from its Service and the edge's shutdown: new visitors reach other edges by then. */
const LINGER_S = 2
/** Seconds in which requests under way finish, and clients are asked one by one to reconnect. */
const GRACE_S = 60
/** Size of the volume: the journal's spool (256 MiB) and a snapshot of the served objects. */
const DATA_MIB = 512
const USER = 1_000

/**
 * Deployment of an endpoint's edges. No field of a pod depends on the version of the operator: an upgrade restarts no edge.
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
      // Sessions move when an edge stops: one edge at a time, and only after another is ready.
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

function podSpec({ metadata: { name }, spec: { domain } }: TunnelEndpoint, settings: EdgePodSettings): Plain<V1PodSpec> {
  const { pullSecrets, priorityClassName, nodeSelector, tolerations, journalOutside } = settings
  return {
    serviceAccountName: edgeName(name),
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_S,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(pullSecrets.length > 0 && { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
    ...(priorityClassName !== '' && { priorityClassName }),
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector: { ...nodeSelector } }),
    ...(tolerations.length > 0 && { tolerations: [...tolerations] }),
    affinity: affinityOf(name, settings),
    containers: [containerOf(name, settings)],
    volumes: [
      secret('host-keys', hostKeysSecret(domain)),
      // The key of the mesh CA stays with the operator.
      secret('mesh', meshSecret(name), { keys: ['ca.crt', 'tls.crt', 'tls.key'] }),
      // The Secret of an outside journal exists only after the journal has answered: edges serve visitors before that.
      secret('journal', JOURNAL_SECRET, { optional: journalOutside }),
      { name: 'data', emptyDir: { sizeLimit: `${DATA_MIB}Mi` } },
    ],
  }
}

interface SecretOptions {
  /** Keys that are mounted. Default: all. */
  readonly keys?: readonly string[]
  /** Whether the pod starts without the Secret; its files appear when it is created. */
  readonly optional?: boolean
}

/** Volume of a Secret that the operator creates. The pod waits for it unless it is optional. */
const secret = (name: string, secretName: string, { keys, optional = false }: SecretOptions = {}) => ({
  name,
  secret: {
    secretName,
    defaultMode: 0o440,
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
    securityContext: CONFINED,
    resources: plainResources(resources),
    startupProbe: { httpGet: httpGet('/healthz'), periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { httpGet: httpGet('/healthz'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    readinessProbe: ready,
    lifecycle: { preStop: { sleep: { seconds: LINGER_S } } },
    // The pod's status then shows why the edge ended.
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

/** Quantities as strings: YAML also allows a number. */
function plainResources({ requests = {}, limits = {} }: EdgePodSettings['resources']) {
  const texts = (quantities: Readonly<Record<string, string | number>>) =>
    Object.fromEntries(Object.entries(quantities).map(([what, much]) => [what, String(much)]))
  return { requests: texts(requests), limits: texts(limits) }
}

/** Whether a log line may be shown: the last line of an edge is written for people and holds no secret. */
const isShowable = (): boolean => true

/** Returns the number of ready edges and, while there is no ready edge, the reason. Pure. */
export function edgesState(deployment: Deployment, pods: readonly Pod[]): EdgeState {
  const ready = deployment.status?.readyReplicas ?? 0
  if (ready > 0) return { ready }
  if (deployment.spec.replicas === 0) return { ready, message: 'no edges are desired: spec.replicas is 0' }
  const refusal = refusalOf(deployment)
  return refusal === undefined ? { ready, ...troubleOf(pods) } : { ready, message: refusal, isFailing: true }
}

/** Rejection of pods by the API server: a quota, or an admission controller. */
function refusalOf({ status }: Deployment): string | undefined {
  const failure = status?.conditions.find(({ type, status: holds }) => type === 'ReplicaFailure' && holds === 'True')
  return failure && `its pods cannot be created: ${failure.message ?? ''}`
}

function troubleOf(pods: readonly Pod[]): Omit<EdgeState, 'ready'> {
  const states = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map((pod) => podState(pod, isShowable))
  const worst = states.find(({ phase }) => phase === 'failed') ?? states[0]
  if (!worst || worst.phase === 'serving') return { message: 'no edge answers yet' }
  return { message: worst.message, ...(worst.phase === 'failed' && { isFailing: true }) }
}
