import type { Motor } from '../../crds/motor.ts'
import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf, isReady } from '../../store/conditions.ts'
import { keyToString } from '../../store/port.ts'
import { isOverQuota, quotaIndexes } from '../quota/quota.ts'
import { suffixOf, tenantSuffix } from './kept-secret.ts'

/** Value of the index `waiting`. */
export const waitingFor = (region: string, motor: Motor): string => `${region}/${motor}`

/** Whether the desired state of the instance is in force, so that no caller waits for it. */
export function isSettled(instance: SharedInstance): boolean {
  const { metadata, status } = instance
  return metadata.deletionTimestamp === undefined && isReady(instance) && status?.observedGeneration === metadata.generation
}

/** Whether its status says that the quota is exceeded. */
export const isOver = isOverQuota(InstanceReason.QuotaExceeded)

/** Whether its status says that its Namespace is not a tenant's. */
const isRefused = (instance: SharedInstance): boolean => conditionOf(instance, 'Ready')?.reason === InstanceReason.NoAccess

/** Indexes of the cache of SharedInstances. */
export const instanceIndexes = {
  ...quotaIndexes({ hasBegun: isClaimed, reason: InstanceReason.QuotaExceeded }),
  /** DatabaseServer of the instance. */
  server: ({ status }: SharedInstance): readonly string[] => (status?.serverRef ? [status.serverRef.name] : []),
  /** Region and motor of an instance that needs a slot; none while it is not admitted. */
  waiting(instance: SharedInstance): readonly string[] {
    const { status, spec, metadata } = instance
    if (status?.serverRef || metadata.deletionTimestamp !== undefined || isOver(instance) || isRefused(instance)) return []
    return [waitingFor(spec.region, spec.motor)]
  },
  /** Template of an instance that is not copied from it yet. */
  template: ({ status, spec, metadata }: SharedInstance): readonly string[] =>
    spec.templateRef && status?.name === undefined ? [keyToString({ ...metadata, name: spec.templateRef.name })] : [],
  /** Last ten characters of its database's name. */
  suffix: ({ metadata }: SharedInstance): readonly string[] => [tenantSuffix(metadata.uid)],
}

/** Returns the instance of a database's name; undefined for a name without one. */
export const instanceNamed = (
  instances: Pick<Cache<typeof SharedInstance>, 'byIndex'>,
  name: string,
): SharedInstance | undefined => instances.byIndex('suffix', suffixOf(name) ?? '')[0]
