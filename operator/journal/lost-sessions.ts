import { randomUUIDv7 } from 'node:crypto'
import type { ConnectionRecord } from '../../journal/port.ts'
import type { Pod } from '../kubernetes/kinds.ts'

/** Time for a restarted container of an edge to ship spooled records of the former one: the end of a session may be among them. */
const GRACE_MS = 30_000
const CONTAINER = 'edge'
/** Container times are truncated to seconds. An edge accepts no client in its first second (edge/start.ts). */
const SECOND_MS = 1_000

/** Session that is open in the journal but that no edge has any more. */
export interface Lost {
  readonly session: ConnectionRecord
  /** Latest time at which the session can have ended, in milliseconds since the epoch; undefined when its pod is gone. */
  readonly since: number | undefined
}

/**
 * Returns the sessions that no edge will end: those of a deleted pod or of a former container. Pure. `pods` must have been listed after the
 * sessions were read: a live session's pod is then in the list.
 */
export function lostSessions(open: readonly ConnectionRecord[], pods: readonly Pod[]): readonly Lost[] {
  const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]))
  return open.flatMap((session): Lost[] => {
    const pod = byName.get(session.edge)
    if (!pod) return [{ session, since: undefined }]
    const since = beganAt(pod)
    if (since === undefined || session.at >= since + SECOND_MS || isOlderThan(pod, session)) return []
    return [{ session, since }]
  })
}

/** Whether a session is older than its pod, which means that the node's clock was set back: its times are then not comparable. */
const isOlderThan = ({ status }: Pod, { at }: ConnectionRecord): boolean => at < Date.parse(status?.startTime ?? '')

/** Time at which the container last started or ended, up to a second too early; undefined while unknown. */
function beganAt({ status }: Pod): number | undefined {
  const container = status?.containerStatuses.find(({ name }) => name === CONTAINER)
  if (!container) return undefined
  const { state, lastState } = container
  const at = state.running?.startedAt ?? state.terminated?.finishedAt ?? lastState.terminated?.finishedAt
  return at === undefined ? undefined : Date.parse(at)
}

/** Filter for lost sessions that may be ended now: those of deleted pods at once, others after a grace time. */
export interface Patience {
  due(lost: readonly Lost[], now: number): readonly Lost[]
}

/** Creates the filter. `now` is in milliseconds of a monotonic clock. */
export function createPatience(): Patience {
  const seen = new Map<string, number>()
  return {
    due(lost, now) {
      const ids = new Set(lost.map(({ session }) => session.sessionId))
      for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
      return lost.filter(({ session, since }) => {
        if (since === undefined) return true
        const first = seen.get(session.sessionId) ?? now
        seen.set(session.sessionId, first)
        return now - first >= GRACE_MS
      })
    },
  }
}

/** Record that ends a session on behalf of its edge. */
export function endOf({ session, since }: Lost, now: number): ConnectionRecord {
  const at = Math.max(session.at, since ?? now)
  return { ...session, id: randomUUIDv7(), at, type: 'disconnect', reason: 'edge_lost', durationMs: at - session.at }
}

/** Ends sessions, with at most one end record of each under way. */
export interface Endings {
  /** Ids of sessions whose end is not confirmed yet: the journal may still show them as open. */
  underWay(): ReadonlySet<string>
  /** Writes the ends. @returns number of confirmed ends; rejected ones stay lost sessions */
  end(lost: readonly Lost[]): Promise<number>
}

/** Creates the writer of ends. `keep` resolves when a record is durable. */
export function createEndings(keep: (end: ConnectionRecord) => Promise<void>): Endings {
  const underWay = new Set<string>()

  async function endOne(lost: Lost): Promise<void> {
    const { sessionId } = lost.session
    underWay.add(sessionId)
    try {
      await keep(endOf(lost, Date.now()))
    } finally {
      underWay.delete(sessionId)
    }
  }

  return {
    underWay: () => new Set(underWay),
    async end(lost) {
      const ends = await Promise.allSettled(lost.filter(({ session }) => !underWay.has(session.sessionId)).map(endOne))
      return ends.filter(({ status }) => status === 'fulfilled').length
    },
  }
}
