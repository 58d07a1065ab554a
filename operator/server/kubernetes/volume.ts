import { PersistentVolumeClaim, type Pod, type StatefulSet } from '../../kubernetes/kinds.ts'
import { isStoreError, keyOf, type Store } from '../../../store/port.ts'
import type { Held } from '../runtime.ts'

/** Number of bytes for each binary and decimal suffix of a Kubernetes quantity. */
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
}
const GIB = 2 ** 30

/** Returns a quantity of storage in GiB; 0 for a text without such a suffix or number. */
export function gibOf(quantity: string | undefined): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(quantity ?? '') ?? []
  return (Number(amount) * (UNITS[unit] ?? 0)) / GIB
}

/** Next step for a volume: nothing, request its growth, or wait for a requested growth. */
export type VolumeStep = 'none' | 'request' | 'wait'

/** Plans the growth of a volume to a desired size. Pure. A volume never shrinks, so a smaller desired size changes nothing. */
export function volumeStep({ spec, status }: Pick<PersistentVolumeClaim, 'spec' | 'status'>, storageGiB: number): VolumeStep {
  if (gibOf(spec.resources.requests.storage) < storageGiB) return 'request'
  const capacity = status?.capacity?.storage
  return capacity !== undefined && gibOf(capacity) < storageGiB ? 'wait' : 'none'
}

/** Time in ms after which a rejected growth is requested again: an administrator may have changed the storage class. */
const AGAIN_MS = 60_000

interface VolumesDeps {
  readonly store: Store
  readonly now: () => Date
}

/**
 * Creates the function that makes the volume of a server grow. It changes the claim itself, because the claim template of a StatefulSet
 * cannot change (stateful-set.ts).
 */
export function createVolumes({ store, now }: VolumesDeps) {
  /** Size in GiB and time in ms of the last rejected growth, by uid of the claim. */
  const rejected = new Map<string, { readonly storageGiB: number; readonly at: number }>()

  async function request(claim: PersistentVolumeClaim, storageGiB: number): Promise<Held> {
    const { uid } = claim.metadata
    const before = rejected.get(uid)
    const isRecent = before?.storageGiB === storageGiB && now().getTime() - before.at < AGAIN_MS
    try {
      if (isRecent) return notExpandable(claim, storageGiB)
      const patch = { spec: { resources: { requests: { storage: `${storageGiB}Gi` } } } }
      await store.mergePatch(PersistentVolumeClaim, keyOf(claim), patch, { uid })
      rejected.delete(uid)
      return growing(storageGiB)
    } catch (error) {
      if (!isStoreError(error, 'forbidden') && !isStoreError(error, 'invalid')) throw error
      rejected.set(uid, { storageGiB, at: now().getTime() })
      return notExpandable(claim, storageGiB)
    }
  }

  /** Makes a volume grow. @returns why the volume does not have the size yet; undefined when it has, or does not exist yet */
  return async function grow(claim: PersistentVolumeClaim | undefined, storageGiB: number): Promise<Held | undefined> {
    if (!claim) return undefined
    const step = volumeStep(claim, storageGiB)
    if (step === 'request') return request(claim, storageGiB)
    return step === 'wait' ? growing(storageGiB) : undefined
  }
}

const growing = (storageGiB: number): Held => ({ reason: 'Updating', message: `the volume is growing to ${storageGiB} GiB` })

function notExpandable({ spec }: PersistentVolumeClaim, storageGiB: number): Held {
  const ofClass = spec.storageClassName === undefined ? '' : ` ${spec.storageClassName}`
  const present = gibOf(spec.resources.requests.storage)
  const message = `the storage class${ofClass} does not let the volume grow from ${present} to ${storageGiB} GiB: set allowVolumeExpansion`
  return { reason: 'StorageNotExpandable', message }
}

/** Label by which a pod names the revision of its StatefulSet. */
const REVISION = 'controller-revision-hash'

/** Whether a pod was created from a former revision of its StatefulSet, or Kubernetes has not processed the newest one yet. Pure. */
export function isOutdated(pod: Pick<Pod, 'metadata'>, set: Pick<StatefulSet, 'metadata' | 'status'> | undefined): boolean {
  const { observedGeneration, updateRevision } = set?.status ?? {}
  if (set === undefined || observedGeneration === undefined || updateRevision === undefined) return false
  return observedGeneration < set.metadata.generation || pod.metadata.labels?.[REVISION] !== updateRevision
}
