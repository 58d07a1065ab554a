import type { Logger } from 'pino'
import type { Clock } from '../../shared/timers.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import type { Kind } from '../../crds/kind.ts'
import { isStoreError, type ListOptions, type Store } from '../../store/port.ts'

export interface UninstallDeps {
  readonly store: KubernetesStore
  readonly log: Pick<Logger, 'info'>
  readonly clock?: Clock
}

/** Kinds whose objects the chart or the operator itself creates: their deletion loses no data. */
const OWN: ReadonlySet<string> = new Set(['Region', 'Plan', 'DatabaseServer', 'TunnelEndpoint'])

/** Kinds whose objects belong to tenants or administrators. */
export const VALUED_KINDS: readonly Kind[] = CUSTOM_KINDS.filter(({ kind }) => !OWN.has(kind))

export interface Count {
  readonly plural: string
  readonly count: number
}

/** Numbers of objects by kind; none for a kind without its CustomResourceDefinition. */
export async function countOf(store: Store, kinds: readonly Kind[]): Promise<readonly Count[]> {
  return Promise.all(kinds.map(async (kind) => ({ plural: kind.plural, count: (await listed(store, kind)).length })))
}

/** All objects of a kind; none when the API server does not know the kind. */
export async function listed<K extends Kind>(store: Store, kind: K, options?: ListOptions) {
  try {
    return (await store.list(kind, options)).items
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
    return []
  }
}

/** Formats counts: `3 sharedinstances, 1 organizations`; undefined when all are 0. Pure. */
export function inWords(counts: readonly Count[]): string | undefined {
  const some = counts.filter(({ count }) => count > 0).map(({ plural, count }) => `${count} ${plural}`)
  return some.length === 0 ? undefined : some.join(', ')
}
