import type { Motor } from '../../crds/motor.ts'
import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import { isReady } from '../../store/conditions.ts'
import { keyToString } from '../../store/key-string.ts'
import { isOverQuota, quotaIndexes } from '../quota/indexes.ts'
import { tenantSuffix } from './naming.ts'

/** Value of the index `waiting`. */
export const waitingFor = (region: string, motor: Motor): string => `${region}/${motor}`

/** Whether all that is wished of it now is done, so that nobody waits for it. */
export function isSettled(instance: SharedInstance): boolean {
  const { metadata, status } = instance
  return metadata.deletionTimestamp === undefined && isReady(instance) && status?.observedGeneration === metadata.generation
}

/** Whether it said last that it waits for room in its namespace. */
export const isOver = isOverQuota(InstanceReason.QuotaExceeded)

/** Indexes that the cache of SharedInstances is made with. */
export const instanceIndexes = {
  ...quotaIndexes({ hasBegun: isClaimed, reason: InstanceReason.QuotaExceeded }),
  /** The DatabaseServer it lives on. */
  server: ({ status }: SharedInstance): readonly string[] => (status?.serverRef ? [status.serverRef.name] : []),
  /** What it still needs a place for; nothing while it may not have one. */
  waiting(instance: SharedInstance): readonly string[] {
    const { status, spec, metadata } = instance
    if (status?.serverRef || metadata.deletionTimestamp !== undefined || isOver(instance)) return []
    return [waitingFor(spec.region, spec.motor)]
  },
  /** What it is to be a copy of, as long as it is not. */
  template: ({ status, spec, metadata }: SharedInstance): readonly string[] =>
    spec.templateRef && status?.name === undefined ? [keyToString({ ...metadata, name: spec.templateRef.name })] : [],
  /** The ten characters its database's name ends in. */
  suffix: ({ metadata }: SharedInstance): readonly string[] => [tenantSuffix(metadata.uid)],
}
