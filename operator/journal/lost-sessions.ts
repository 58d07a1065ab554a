import { randomUUIDv7 } from 'node:crypto'
import type { ConnectionRecord } from '../../journal/port.ts'
import type { Pod } from '../kubernetes/kinds.ts'

/** An edge's container begins its work anew with spooled records of the one before: the end of a session may be among them. */
const GRACE_MS = 30_000
const CONTAINER = 'edge'
/** Times of containers are in whole seconds, cut off. No edge takes clients in its first one (edge/start.ts). */
const SECOND_MS = 1_000

/** What is known of a session that is open in the journal and that no edge has any more. */
export interface Lost {
  readonly session: ConnectionRecord
  /** Since when the session can be there no more, in milliseconds since the epoch; undefined when its pod is gone. */
  readonly since: number | undefined
}

/**
 * Sessions that nobody will end: of a pod that is gone, or of a container before the one that runs. Pure. `pods` must have been listed after
 * the sessions were read: the pod of a session that is live was there before it.
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

/** No session is: its node's clock, which all these times are of, was set back since the pod began, and tells nothing of this one. */
const isOlderThan = ({ status }: Pod, { at }: ConnectionRecord): boolean => at < Date.parse(status?.startTime ?? '')

/** When its container last began or ended, up to a second too early; undefined while that is not known. */
function beganAt({ status }: Pod): number | undefined {
  const container = status?.containerStatuses.find(({ name }) => name === CONTAINER)
  if (!container) return undefined
  const { state, lastState } = container
  const at = state.running?.startedAt ?? state.terminated?.finishedAt ?? lastState.terminated?.finishedAt
  return at === undefined ? undefined : Date.parse(at)
}

/** Which of them may be ended now: those of pods that are gone at once, others once they were seen for a while. */
export interface Patience {
  due(lost: readonly Lost[], now: number): readonly Lost[]
}

/** `now` of a clock that only goes forward, in milliseconds. */
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

/** The record that ends a session in the place of its edge. */
export function endOf({ session, since }: Lost, now: number): ConnectionRecord {
  const at = Math.max(session.at, since ?? now)
  return { ...session, id: randomUUIDv7(), at, type: 'disconnect', reason: 'edge_lost', durationMs: at - session.at }
}

/** Ends sessions, each by one record at a time however long that takes. */
export interface Endings {
  /** Sessions whose end is not known to be kept yet: what is read from now on may still have them open. */
  underWay(): ReadonlySet<string>
  /** Resolves with how many ends were kept once all of them are, or are refused: those sessions are lost still. */
  end(lost: readonly Lost[]): Promise<number>
}

/** `keep` resolves when a record is kept for good. */
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
