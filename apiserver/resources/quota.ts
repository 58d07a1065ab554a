import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'

export interface QuotaDeps<K extends Kind> {
  readonly cache: Pick<Cache<K>, 'list'>
  readonly max: number
  /** What they belong to, for the answer; `namespace` unless given. */
  readonly of?: string
  /** What is counted, in the plural, for the answer: `instances`. */
  readonly what: string
}

/** Namespace and name of an object about to be created. */
export interface Place {
  readonly namespace: string
  readonly name: string
}

export interface Quota {
  /**
   * Takes a place for an object about to be created, until disposed of: by then the cache must know the object, or it was not made.
   * An object that is there or under way already has its place, so a repeated request never fails for its own first one.
   * @throws ApiError `quota_exceeded`
   */
  reserve(place: Place): Disposable
}

/**
 * Limits the objects of a kind in a namespace. What the cache holds and what this process is creating are counted together by
 * name, so that requests at the same moment cannot overshoot; several processes may, by what they create within a watch's delay. Of instances and
 * tunnels the operator lets no more begin all the same.
 */
export function createQuota<K extends Kind>({ cache, max, of = 'namespace', what }: QuotaDeps<K>): Quota {
  /** Requests that are creating an object, by namespace and name: a repeated request makes it two. */
  const underWay = new Map<string, Map<string, number>>()

  function reserve({ namespace, name }: Place): Disposable {
    const here = underWay.get(namespace) ?? new Map<string, number>()
    const taken = new Set([...here.keys(), ...cache.list({ namespace }).map((object) => object.metadata.name)])
    if (!taken.has(name) && taken.size >= max) {
      throw new ApiError(
        'quota_exceeded',
        `the quota of this ${of} is used up: ${taken.size} of ${max} ${what}; delete one, or ask for a higher quota`,
      )
    }
    underWay.set(namespace, here.set(name, (here.get(name) ?? 0) + 1))
    return { [Symbol.dispose]: () => release({ namespace, name }) }
  }

  function release({ namespace, name }: Place): void {
    const here = underWay.get(namespace)
    const requests = here?.get(name) ?? 0
    if (requests > 1) here?.set(name, requests - 1)
    else here?.delete(name)
    if (here?.size === 0) underWay.delete(namespace)
  }

  return { reserve }
}
