import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import type { Limited, QuotaDeps } from './quota.ts'

export interface QuotaIndexesOptions<T extends Limited> extends Pick<QuotaDeps<T>, 'hasBegun'> {
  /** Of the `Ready` condition of one that waits for room. */
  readonly reason: string
}

/** Indexes, by namespace, that the cache of a kind with a quota is made with. */
export function quotaIndexes<T extends Limited>({ hasBegun, reason }: QuotaIndexesOptions<T>) {
  const isOver = isOverQuota(reason)
  return {
    unbegun: (object: T): readonly string[] => (hasBegun(object) ? [] : [object.metadata.namespace ?? '']),
    /** Those that were told so, and may be let in some day. */
    overQuota: (object: T): readonly string[] =>
      hasBegun(object) || !isOver(object) || object.metadata.deletionTimestamp !== undefined
        ? []
        : [object.metadata.namespace ?? ''],
  }
}

/** Whether an object said last that it waits for room. */
export const isOverQuota =
  (reason: string) =>
  (object: Conditioned): boolean =>
    conditionOf(object, 'Ready')?.reason === reason
