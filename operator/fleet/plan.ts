import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import { conditionOf } from '../../store/conditions.ts'

/** Observed state of one motor in a region. */
export interface ObservedMotor {
  readonly motor: Motor
  readonly warm: boolean
  /** Free slots that a warm motor keeps, so that a burst does not wait for a server to start. */
  readonly headroom: number
  /** Free slots on servers that count ({@link usefulForMs}). */
  readonly free: number
  /** Instances that wait for a slot. */
  readonly waiting: number
  /** Ordinals of the existing servers. */
  readonly ordinals: readonly number[]
}

/** Time within which a server is expected back after a restart, or a move to another node. */
const RESTART_MS = 30_000

/**
 * Milliseconds from `now` (ms since the epoch) for which free slots of a server count if nothing changes. A server that has never been
 * ready counts without limit: where it cannot start, another could not either. A server that was ready counts for the restart time. Pure.
 */
export function usefulForMs(server: DatabaseServer, now: number): number {
  if (server.metadata.deletionTimestamp !== undefined) return 0
  const ready = conditionOf(server, 'Ready')
  if (!ready || ready.status === 'True' || server.status?.engineVersion === undefined) return Infinity
  return Math.max(0, Date.parse(ready.lastTransitionTime) + RESTART_MS - now)
}

/** Ordinal of the server to create, or undefined. A warm motor keeps free slots; a cold one gets a server on demand. Pure. */
export function nextServer({ warm, headroom, free, waiting, ordinals }: ObservedMotor): number | undefined {
  const desired = Math.max(waiting, warm ? headroom : 0)
  if (free >= desired) return undefined
  let ordinal = 1
  while (ordinals.includes(ordinal)) ordinal += 1
  return ordinal
}

/** Name of a server: `postgresql-15.4.0` in region 1 → `postgresql-15-4-0-r1-1`. Two operators with the same decision create one server. */
export function serverName(motor: Motor, regionId: number, ordinal: number): string {
  return `${motor.replaceAll('.', '-')}-r${regionId}-${ordinal}`
}
