import type { V1Container, V1PersistentVolumeClaim, V1PodSpec, V1StatefulSet } from '@kubernetes/client-node'
import { agentContainer, type BackedUp, backupVolumes, engineMount, restoreContainer, socketMount } from './backup/containers.ts'
import { at } from './engine-pod.ts'
import { exporterContainer, exporterVolume } from './exporter/containers.ts'
import { CONFINED } from '../../kubernetes/container.ts'
import type { StatefulSet, Plain } from '../../kubernetes/kinds.ts'
import { childMetadata, childNames, DATA_VOLUME, selectorOf } from './manifests.ts'
import type { ServerSize, DesiredServer } from './desired-server.ts'

export const podAnnotations = {
  /** Hash of the configuration that the pod was started with. */
  config: 'mooring.dev/config',
  /** Fingerprint of the newest certificate. Set only on the running pod: a change makes the kubelet update its volumes. */
  certificate: 'mooring.dev/certificate',
  /** Hash of the newest access rules, set likewise. */
  access: 'mooring.dev/access',
  /** Namespace and name of the database, which the PodMonitor copies to labels of the metrics (installation/pod-monitor.ts). */
  databaseNamespace: 'mooring.dev/database-namespace',
  database: 'mooring.dev/database',
} as const

export interface StatefulSetFacts {
  readonly configHash: string
  /** Existing StatefulSet: Kubernetes rejects any change of its volume claims. */
  readonly live: StatefulSet | undefined
}

/** Seconds for a checkpoint of the whole memory on a slow disk. */
const GRACE_S = 120

export function statefulSetOf(desired: DesiredServer, facts: StatefulSetFacts): Plain<V1StatefulSet> {
  const { server } = desired
  const { name } = server.metadata
  const names = childNames(name)
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: childMetadata(server, names.statefulSet),
    spec: {
      replicas: 1,
      serviceName: names.pods,
      // With OrderedReady, a pod that cannot start is never replaced by an updated one.
      podManagementPolicy: 'Parallel',
      revisionHistoryLimit: 2,
      selector: { matchLabels: selectorOf(name) },
      // Data is deleted with its DatabaseServer, never because a StatefulSet was deleted by hand.
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      template: {
        metadata: {
          labels: selectorOf(name),
          annotations: { [podAnnotations.config]: facts.configHash, ...databaseIn(desired) },
        },
        spec: podSpec(desired),
      },
      volumeClaimTemplates: [claimOf(desired, facts.live)],
    },
  }
}

function databaseIn({ server, exporter }: DesiredServer): Readonly<Record<string, string>> {
  const { monitoring } = server.spec
  if (!exporter || !monitoring) return {}
  return { [podAnnotations.databaseNamespace]: monitoring.namespace, [podAnnotations.database]: monitoring.database }
}

function podSpec(desired: DesiredServer): Plain<V1PodSpec> {
  const { server, settings, nodeSelector, size, admin, exporter } = desired
  const { uid, gid } = settings.user
  const names = childNames(server.metadata.name)
  const backedUp = backedUpOf(desired)
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_S,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: gid,
      fsGroup: gid,
      // Only once: otherwise every start walks over all files and makes each writable for the group.
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector: { ...nodeSelector } }),
    ...(settings.pullSecrets.length > 0 && { imagePullSecrets: settings.pullSecrets.map((name) => ({ name })) }),
    initContainers: [...defined(backedUp && restoreContainer(backedUp)), initialise(desired)],
    containers: [
      serve(desired),
      ...defined(backedUp && agentContainer(backedUp)),
      ...defined(exporter && exporterContainer(exporter, desired)),
    ],
    volumes: [
      { name: 'config', configMap: { name: names.config } },
      { name: 'certificate', secret: { secretName: names.certificate, defaultMode: 0o440 } },
      { name: 'admin', secret: { secretName: admin.secret, defaultMode: 0o440, items: [{ key: 'password', path: 'password' }] } },
      { name: 'output', emptyDir: { sizeLimit: '64Mi' } },
      { name: 'tmp', emptyDir: { sizeLimit: '1Gi' } },
      // The runtime's own /dev/shm has 64 MB, too little for parallel queries. It counts as the server's memory.
      { name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: `${Math.ceil(size.memoryLimitMiB / 4)}Mi` } },
      ...(backedUp ? backupVolumes(backedUp) : []),
      ...(exporter ? [exporterVolume(server)] : []),
    ],
  }
}

const defined = <T>(value: T | undefined): readonly T[] => (value === undefined ? [] : [value])

function backedUpOf({ server, engine, backups, admin }: DesiredServer): BackedUp | undefined {
  const { dataMount, dataDirectory, port } = engine
  if (!backups || dataDirectory === undefined) return undefined
  return { server, settings: backups, dataMount, dataDirectory, port, admin: admin.user }
}

function initialise({ server, engine, image, size }: DesiredServer): Plain<V1Container> {
  return {
    ...confined(image, size),
    name: 'initialise',
    command: [...engine.initialise],
    volumeMounts: [
      ...ownMounts(engine.dataMount),
      { name: 'admin', mountPath: at.admin, readOnly: true },
      { name: 'output', mountPath: at.output },
      ...engineMount(server),
    ],
  }
}

function serve({ server, engine, image, size, outputAt }: DesiredServer): Plain<V1Container> {
  const tcpSocket = { port: engine.port }
  return {
    ...confined(image, size),
    name: engine.name,
    command: [...engine.serve],
    ports: [{ name: engine.name, containerPort: engine.port, protocol: 'TCP' }],
    // The port is open during recovery, too, which has no time limit: the operator tests logins.
    startupProbe: { tcpSocket, periodSeconds: 1, failureThreshold: 300 },
    readinessProbe: { tcpSocket, periodSeconds: 5, failureThreshold: 2 },
    // A server with a closed port has had its time for a clean shutdown.
    livenessProbe: { tcpSocket, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6, terminationGracePeriodSeconds: 5 },
    lifecycle: { preStop: { exec: { command: [...engine.stop] } } },
    volumeMounts: [
      ...ownMounts(engine.dataMount),
      { name: 'certificate', mountPath: at.certificate, readOnly: true },
      { name: 'shm', mountPath: '/dev/shm' },
      { name: 'output', mountPath: outputAt, readOnly: true },
      ...socketMount(server),
    ],
  }
}

const ownMounts = (dataMount: string) => [
  { name: DATA_VOLUME, mountPath: dataMount },
  { name: 'config', mountPath: at.config, readOnly: true },
  { name: 'tmp', mountPath: '/tmp' },
]

/** Settings of both containers. */
function confined(image: string, size: ServerSize): Omit<Plain<V1Container>, 'name'> {
  return {
    image,
    imagePullPolicy: 'IfNotPresent',
    securityContext: CONFINED,
    resources: {
      requests: { cpu: cpu(size.cpu), memory: `${size.memoryMiB}Mi` },
      limits: { cpu: cpu(size.cpuLimit), memory: `${size.memoryLimitMiB}Mi` },
    },
    // The pod's status then shows the end of the log, from which the reason of a crash is read.
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
}

const cpu = (cores: number): string => `${Math.round(cores * 1000)}m`

function claimOf({ server, settings, size }: DesiredServer, live: StatefulSet | undefined): Plain<V1PersistentVolumeClaim> {
  const known = live?.spec.volumeClaimTemplates[0]?.spec
  const storageClassName = known ? known.storageClassName : settings.storageClass
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: DATA_VOLUME, labels: selectorOf(server.metadata.name) },
    spec: {
      accessModes: ['ReadWriteOnce'],
      ...(storageClassName !== undefined && { storageClassName }),
      resources: { requests: { storage: known?.resources.requests.storage ?? `${size.storageGiB}Gi` } },
    },
  }
}
