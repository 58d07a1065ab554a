import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { every, whenAborted } from '../../shared/timers.ts'
import type { ConnectionRecord, JournalReader } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import { ignoringGone, keyOf, type Store } from '../../store/port.ts'

export interface PresenceDeps {
  readonly store: Pick<Store, 'patchStatus'>
  /** Tunnels, with the indexes of indexes.ts. */
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'byUid' | 'byIndex'>
  readonly journal: Pick<JournalReader, 'openSessions'>
  /** Receives the error of a poll; the next poll tries again. */
  readonly onError: (error: unknown) => void
}

/** Interval of polling the journal. */
const POLL_MS = 10_000
/** Minimum interval of writes to a tunnel's status: a client that reconnects repeatedly must not load the store. */
const WRITE_MS = 30_000

/** Connected clients of a tunnel, as its status has them. */
interface Presence {
  readonly connected: boolean
  readonly sessions: number
  readonly lastConnectedAt?: string
}

/** Creates the poller that writes into each tunnel's status whether clients are connected. Sessions change too often to be stored. */
export function createPresence({ store, tunnels, journal, onError }: PresenceDeps): { run(signal: AbortSignal): Promise<void> } {
  const writtenAt = new Map<string, number>()

  async function poll(): Promise<void> {
    const open = Map.groupBy(await journal.openSessions(), ({ tunnel }) => tunnel)
    const at = performance.now()
    for (const [uid, then] of writtenAt) if (at - then > WRITE_MS) writtenAt.delete(uid)
    // Only connected tunnels: a pass over ten thousand takes 16 ms and allocates.
    const connected = [...open.keys()].flatMap((uid) => tunnels.byUid(uid) ?? [])
    for (const tunnel of new Set([...connected, ...tunnels.byIndex('connected', 'yes')])) {
      const now = hasNoEndpoint(tunnel) ? NOT_CONNECTED : presenceOf(open.get(tunnel.metadata.uid) ?? [])
      if (!differs(tunnel, now) || writtenAt.has(tunnel.metadata.uid)) continue
      writtenAt.set(tunnel.metadata.uid, at)
      await write(tunnel, now)
    }
  }

  async function write(tunnel: Tunnel, presence: Presence): Promise<void> {
    await ignoringGone(store.patchStatus(Tunnel, keyOf(tunnel), presence, { uid: tunnel.metadata.uid }))
  }

  async function run(signal: AbortSignal): Promise<void> {
    const polling = every(POLL_MS, () => poll().catch(onError))
    await whenAborted(signal)
    await polling[Symbol.asyncDispose]()
  }

  return { run }
}

/** Status of a tunnel without a client. */
export const NOT_CONNECTED = { connected: false, sessions: 0 } as const satisfies Presence

/** Whether the endpoint of a tunnel was deleted or withdrawn. The journal may still have sessions of its edges, which end later. */
const hasNoEndpoint = (tunnel: Tunnel): boolean => WITHOUT_ENDPOINT.has(conditionOf(tunnel, 'Ready')?.reason ?? '')
const WITHOUT_ENDPOINT: ReadonlySet<string> = new Set([TunnelReason.EndpointMissing, TunnelReason.NoAccess])

/** Status of open sessions. Pure. */
export function presenceOf(open: readonly Pick<ConnectionRecord, 'at'>[]): Presence {
  const newest = Math.max(...open.map(({ at }) => at))
  if (open.length === 0) return NOT_CONNECTED
  return { connected: true, sessions: open.length, lastConnectedAt: new Date(newest).toISOString() }
}

/** Whether the status differs. A tunnel that never had a client gets no status about clients. */
function differs({ status }: Tunnel, { connected, sessions, lastConnectedAt }: Presence): boolean {
  const isNew = lastConnectedAt !== undefined && status?.lastConnectedAt !== lastConnectedAt
  return (status?.connected ?? false) !== connected || (status?.sessions ?? 0) !== sessions || isNew
}
