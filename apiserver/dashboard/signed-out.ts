import { ConfigMap } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { isStoreError, type Store } from '../../store/port.ts'

/** ConfigMap with the sessions that have signed out: the end of each, in seconds since the epoch, by its id. The chart creates it in a cluster. */
const KEY = { namespace: SYSTEM_NAMESPACE, name: 'mooring-dashboard-signed-out' }
/** Maximum age of the list that a request is checked against, in milliseconds: the delay of a sign-out on the other replicas. */
export const BEHIND_MS = 2_000
/** Maximum of sessions in the list, about 300 KB. */
const MOST = 5_000

type Ends = Readonly<Record<string, string>>

/** Sessions of the dashboard that were ended before their cookie expires. All replicas share them through the store. */
export interface SignedOut {
  /** @throws StoreError when the list was never read */
  has(id: string): Promise<boolean>
  /** Adds a session. `until` is the expiry of its cookie in seconds since the epoch. @throws StoreError */
  add(id: string, until: number): Promise<void>
}

export interface SignedOutDeps {
  readonly store: Pick<Store, 'get' | 'create' | 'mergePatch'>
  readonly now: () => Date
}

export function createSignedOut({ store, now }: SignedOutDeps): SignedOut {
  let known: { readonly ends: Ends; readonly at: number } | undefined
  let reading: Promise<Ends> | undefined
  /** Sessions that this process has added: a read that began before may end later. */
  const own = new Map<string, number>()

  /** Returns the list, at most {@link BEHIND_MS} old. While the store is unavailable it is the last one that was read. */
  async function current(): Promise<Ends> {
    const at = now().getTime()
    if (known && Math.abs(at - known.at) < BEHIND_MS) return known.ends
    try {
      return await (reading ??= read(at))
    } catch (error) {
      if (known && isStoreError(error, 'unavailable')) return known.ends
      throw error
    } finally {
      reading = undefined
    }
  }

  async function read(at: number): Promise<Ends> {
    const ends = (await store.get(ConfigMap, KEY))?.data ?? {}
    known = { ends, at }
    return ends
  }

  async function write(data: Readonly<Record<string, string | null>>): Promise<ConfigMap> {
    try {
      return await store.mergePatch(ConfigMap, KEY, { data })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
    try {
      await store.create(ConfigMap, { metadata: KEY })
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
    return store.mergePatch(ConfigMap, KEY, { data })
  }

  return {
    has: async (id) => own.has(id) || Object.hasOwn(await current(), id),
    async add(id, until) {
      const at = now().getTime()
      const removed = superfluous(await read(at), at / 1e3)
      const { data } = await write({ ...Object.fromEntries(removed.map((other) => [other, null])), [id]: String(until) })
      known = { ends: data, at }
      for (const [other, end] of own) if (end * 1e3 <= at) own.delete(other)
      own.set(id, until)
    },
  }
}

/** Returns the ids to remove before one is added: those of expired sessions, and above the maximum those that expire first. Pure. */
export function superfluous(ends: Ends, nowSeconds: number): readonly string[] {
  const byEnd = Object.entries(ends).toSorted(([, a], [, b]) => Number(a) - Number(b))
  const expired = byEnd.filter(([, end]) => Number(end) <= nowSeconds).length
  return byEnd.slice(0, Math.max(expired, byEnd.length - MOST + 1)).map(([id]) => id)
}
