import type { Motor } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'

/** What one server may use. */
export interface ServerSize {
  /** Cores that are set aside for it. */
  readonly cpu: number
  /** Cores that it may use at the most. */
  readonly cpuLimit: number
  /** MiB that are set aside for it. */
  readonly memoryMiB: number
  /** MiB past which it is killed. */
  readonly memoryLimitMiB: number
  readonly storageGiB: number
}

/** How database servers run as pods. The same for all of an installation; a Region's exposure, images and nodes come on top. */
export interface PodSettings {
  /** Namespace of the servers. */
  readonly namespace: string
  /** Namespace and labels of the operator's pods: they, and callers, may connect to a server. */
  readonly operator: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> }
  /** Image by motor; a motor without one is not served, unless a Region names one. */
  readonly images: Readonly<Partial<Record<Motor, string>>>
  /** Names of Secrets with which images are pulled. */
  readonly pullSecrets: readonly string[]
  /** Uid and gid of the engine's user in the images (docs/images.md). */
  readonly user: { readonly uid: number; readonly gid: number }
  /** Size of a server without a plan. */
  readonly sharedSize: ServerSize
  /** The cluster's default class unless given. */
  readonly storageClass?: string | undefined
  /** Address ranges of the cluster's pods; worked out when empty (pod-networks.ts). */
  readonly podNetworks: readonly string[]
  /** The cluster's DNS domain. */
  readonly clusterDomain: string
  /** How the operator dials a server: by its Service's name, or, from outside of the cluster's DNS, by the Service's address. */
  readonly dial: 'name' | 'address'
  /** Every server is looked at this often, even if nothing changes. */
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
