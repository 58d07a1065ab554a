import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import type { Limited, QuotaDeps } from './quota.ts'

export interface QuotaIndexesOptions<T extends Limited> extends Pick<QuotaDeps<T>, 'hasBegun'> {
  /** Reason of the `Ready` condition of an object that waits because its namespace is full. */
  readonly reason: string
}

/** Indexes, by namespace, for the cache of a kind with a quota. */
export function quotaIndexes<T extends Limited>({ hasBegun, reason }: QuotaIndexesOptions<T>) {
  const isOver = isOverQuota(reason)
  return {
    unbegun: (object: T): readonly string[] => (hasBegun(object) ? [] : [object.metadata.namespace ?? '']),
    /** Objects whose status says that the quota is exceeded, and that may be admitted later. */
    overQuota: (object: T): readonly string[] =>
      hasBegun(object) || !isOver(object) || object.metadata.deletionTimestamp !== undefined
        ? []
        : [object.metadata.namespace ?? ''],
  }
}

/** Whether an object's status says that the quota is exceeded. */
export const isOverQuota =
  (reason: string) =>
  (object: Conditioned): boolean =>
    conditionOf(object, 'Ready')?.reason === reason
