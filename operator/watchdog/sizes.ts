import type { Logger } from 'pino'
import { InstanceReason, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyOf } from '../../store/key-string.ts'
import type { OpenServer } from '../server/admins.ts'
import { suffixOf } from '../shared-instance/naming.ts'
import type { Suspicions } from '../shared-instance/suspicions.ts'

export interface SizesDeps {
  /** Instances, with the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  readonly suspicions: Pick<Suspicions, 'oversize'>
  readonly sizeBytes: number
  readonly log: Pick<Logger, 'info'>
  /** Called with an instance whose database grew above its size limit, or shrank below it. */
  readonly wake: (instance: SharedInstance) => void
}

/** Measures the databases of one server, all or only those that can grow now, and marks the instances above their size limit. */
export type CheckSizes = (server: string, open: OpenServer, which: 'all' | 'busy') => Promise<void>

export function createSizeCheck({ instances, suspicions, sizeBytes, log, wake }: SizesDeps): CheckSizes {
  return async function checkSizes(server, { admin }, which) {
    const resets = new Map(instances.byIndex('server', server).map(({ metadata, status }) => [metadata.uid, resetsOf(status)]))
    for (const [name, bytes] of await admin.sizes(which)) {
      const owner = instances.byIndex('suffix', suffixOf(name) ?? '')[0]
      if (!owner || isBeingReset(owner, resets)) continue
      const { uid } = owner.metadata
      const isOversize = bytes > sizeBytes
      // Ending a session drops what it wrote in an open transaction: only a check of all databases clears the mark.
      if (!isOversize && which === 'busy') continue
      if (isOversize === suspicions.oversize.has(uid)) continue
      if (isOversize) suspicions.oversize.add(uid)
      else suspicions.oversize.delete(uid)
      log.info({ server, instance: keyOf(owner), bytes, isOversize }, 'database crossed its size limit')
      wake(owner)
    }
  }
}

/** Whether the database is being reset: the size of the former database would disable the new one. */
function isBeingReset(instance: SharedInstance, resets: ReadonlyMap<string, number>): boolean {
  const { metadata, spec, status } = instance
  return spec.resetVersion > (resets.get(metadata.uid) ?? resetsOf(status)) && !waitsToReset(instance)
}

const resetsOf = (status: SharedInstance['status']): number => status?.resetVersion ?? 0

/** Whether a requested reset waits until its template can be copied: the database keeps its size meanwhile. */
function waitsToReset(instance: SharedInstance): boolean {
  const reason = conditionOf(instance, 'Ready')?.reason
  const waits = reason === InstanceReason.TemplateNotFound || reason === InstanceReason.TemplateInUse
  return waits && instance.spec.resetVersion > resetsOf(instance.status)
}
