import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'

export interface QuotaDeps<K extends Kind> {
  readonly cache: Pick<Cache<K>, 'list'>
  readonly max: number
  /** Owner of the quota in messages; `namespace` when absent. */
  readonly of?: string
  /** Counted objects in messages, in the plural: `databases`. */
  readonly what: string
}

/** Namespace and name of an object about to be created. */
export interface ObjectKey {
  readonly namespace: string
  readonly name: string
}

export interface Quota {
  /**
   * Reserves a slot for an object about to be created. Dispose of the reservation when the cache has the object or its creation failed.
   * An existing object, or one being created, already has its slot, so a repeated request never fails because of the first one.
   * @throws ApiError `quota_exceeded`
   */
  reserve(key: ObjectKey): Disposable
}

/**
 * Limits the objects of a kind in a namespace. Cached objects and objects that this process is creating are counted together by name, so that
 * simultaneous requests cannot exceed the limit. Several processes can, by the objects created within the delay of a watch; for instances and
 * tunnels the operator enforces the quota as well.
 */
export function createQuota<K extends Kind>({ cache, max, of = 'namespace', what }: QuotaDeps<K>): Quota {
  /** Number of requests that are creating an object, by namespace and name; a repeated request counts again. */
  const creating = new Map<string, Map<string, number>>()

  function reserve({ namespace, name }: ObjectKey): Disposable {
    const here = creating.get(namespace) ?? new Map<string, number>()
    const taken = new Set([...here.keys(), ...cache.list({ namespace }).map((object) => object.metadata.name)])
    if (!taken.has(name) && taken.size >= max) {
      throw new ApiError(
        'quota_exceeded',
        `the quota of this ${of} is used up: ${taken.size} of ${max} ${what}; delete one, or ask for a higher quota`,
      )
    }
    creating.set(namespace, here.set(name, (here.get(name) ?? 0) + 1))
    return { [Symbol.dispose]: () => release({ namespace, name }) }
  }

  function release({ namespace, name }: ObjectKey): void {
    const here = creating.get(namespace)
    const requests = here?.get(name) ?? 0
    if (requests > 1) here?.set(name, requests - 1)
    else here?.delete(name)
    if (here?.size === 0) creating.delete(namespace)
  }

  return { reserve }
}
