import type { Motor } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'

/** Resources of one server. */
export interface ServerSize {
  /** Requested cores. */
  readonly cpu: number
  /** Maximum number of cores. */
  readonly cpuLimit: number
  /** Requested memory in MiB. */
  readonly memoryMiB: number
  /** Memory in MiB above which the server is killed. */
  readonly memoryLimitMiB: number
  readonly storageGiB: number
}

/** How database servers run as pods, for the whole installation. A Region adds exposure, images and nodes. */
export interface PodSettings {
  /** Namespace of the servers. */
  readonly namespace: string
  /** Namespace and labels of the operator's pods, which may connect to every server. */
  readonly operator: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> }
  /** Image by motor; a motor without an image is not served unless a Region names one. */
  readonly images: Readonly<Partial<Record<Motor, string>>>
  /** Names of the Secrets with which images are pulled. */
  readonly pullSecrets: readonly string[]
  /** Uid and gid of the engine's user in the images (docs/images.md). */
  readonly user: { readonly uid: number; readonly gid: number }
  /** Size of a server without a plan. */
  readonly sharedSize: ServerSize
  /** StorageClass. Default: that of the cluster. */
  readonly storageClass?: string | undefined
  /** Address ranges of the cluster's pods; derived when empty (pod-networks.ts). */
  readonly podNetworks: readonly string[]
  /** DNS domain of the cluster. */
  readonly clusterDomain: string
  /** How the operator dials a server: by its Service's name or, without the cluster's DNS, by the Service's address. */
  readonly dial: 'name' | 'address'
  /** Interval of reconciling every server even without a change. */
  readonly resyncMs: number
}

export const POD_SETTINGS: PodSettings = {
  namespace: SHARED_NAMESPACE,
  operator: {
    namespace: SYSTEM_NAMESPACE,
    labels: { 'app.kubernetes.io/name': 'mooring', 'app.kubernetes.io/component': 'operator' },
  },
  images: { 'postgresql-15.4.0': 'postgres:15.4', 'postgresql-14.4.0': 'postgres:14.4' },
  pullSecrets: [],
  user: { uid: 999, gid: 999 },
  sharedSize: { cpu: 0.1, cpuLimit: 2, memoryMiB: 256, memoryLimitMiB: 2048, storageGiB: 10 },
  podNetworks: [],
  clusterDomain: 'cluster.local',
  dial: 'name',
  resyncMs: 300_000,
}
