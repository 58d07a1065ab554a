import { Tunnel } from '../../crds/tunnel.ts'
import { every } from '../../journal/every.ts'
import type { ConnectionRecord, JournalReader } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Store } from '../../store/port.ts'

export interface PresenceDeps {
  readonly store: Pick<Store, 'patchStatus'>
  /** With the indexes of indexes.ts. */
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'byUid' | 'byIndex'>
  readonly journal: Pick<JournalReader, 'openSessions'>
  /** What a look throws; the next one tries again. */
  readonly onError: (error: unknown) => void
}

/** How often the journal is asked who is connected. */
const LOOK_MS = 10_000
/** A tunnel's status is written no more often: a client that comes and goes must not keep the store busy. */
const WRITE_MS = 30_000

/** Who is connected, by tunnel, as a status has it. */
interface Presence {
  readonly connected: boolean
  readonly sessions: number
  readonly lastConnectedAt?: string
}

/** Says in each tunnel's status whether clients are connected. Sessions themselves are in no store: they come and go far too often. */
export function createPresence({ store, tunnels, journal, onError }: PresenceDeps): { run(signal: AbortSignal): Promise<void> } {
  const writtenAt = new Map<string, number>()

  async function look(): Promise<void> {
    const open = Map.groupBy(await journal.openSessions(), ({ tunnel }) => tunnel)
    const at = performance.now()
    for (const [uid, then] of writtenAt) if (at - then > WRITE_MS) writtenAt.delete(uid)
    // Not all there are: each look at ten thousand takes 16 ms, and leaves garbage.
    const connected = [...open.keys()].flatMap((uid) => tunnels.byUid(uid) ?? [])
    for (const tunnel of new Set([...connected, ...tunnels.byIndex('connected', 'yes')])) {
      const now = presenceOf(open.get(tunnel.metadata.uid) ?? [])
      if (!differs(tunnel, now) || writtenAt.has(tunnel.metadata.uid)) continue
      writtenAt.set(tunnel.metadata.uid, at)
      await write(tunnel, now)
    }
  }

  async function write(tunnel: Tunnel, presence: Presence): Promise<void> {
    try {
      await store.patchStatus(Tunnel, keyOf(tunnel), presence, { uid: tunnel.metadata.uid })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const ended = Promise.withResolvers<undefined>()
    const looking = every(LOOK_MS, () => look().catch(onError))
    signal.addEventListener('abort', () => ended.resolve(undefined), { once: true })
    if (!signal.aborted) await ended.promise
    await looking[Symbol.asyncDispose]()
  }

  return { run }
}

/** Pure. */
export function presenceOf(open: readonly Pick<ConnectionRecord, 'at'>[]): Presence {
  const newest = Math.max(...open.map(({ at }) => at))
  if (open.length === 0) return { connected: false, sessions: 0 }
  return { connected: true, sessions: open.length, lastConnectedAt: new Date(newest).toISOString() }
}

/** A tunnel that never had a client is not told that it has none. */
function differs({ status }: Tunnel, { connected, sessions, lastConnectedAt }: Presence): boolean {
  const isNew = lastConnectedAt !== undefined && status?.lastConnectedAt !== lastConnectedAt
  return (status?.connected ?? false) !== connected || (status?.sessions ?? 0) !== sessions || isNew
}
