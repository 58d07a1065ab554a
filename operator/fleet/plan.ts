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
  /** Whether a server with this ordinal exists, or an instance names a former one. */
  readonly isTaken: (ordinal: number) => boolean
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
export function nextServer({ warm, headroom, free, waiting, isTaken }: ObservedMotor): number | undefined {
  const desired = Math.max(waiting, warm ? headroom : 0)
  if (free >= desired) return undefined
  let ordinal = 1
  while (isTaken(ordinal)) ordinal += 1
  return ordinal
}

/** Time for which a server without instances stays up, unless its motor is warm: the next instance then does not wait for a start. */
export const IDLE_MS = 600_000

/** Observed state of one server. */
export interface ObservedServer {
  /** Whether its motor is warm: servers then keep free capacity. */
  readonly warm: boolean
  /** Whether the operator created it; an administrator may have created others. */
  readonly isOwn: boolean
  /** Time since which it has had no instance and none has waited for its motor, in ms since the epoch; undefined while it has some. */
  readonly idleSince: number | undefined
}

/** Milliseconds from `now` until a server is deleted if nothing changes; Infinity for a server that stays. Pure. */
export function retiresInMs({ warm, isOwn, idleSince }: ObservedServer, now: number): number {
  if (warm || !isOwn || idleSince === undefined) return Infinity
  return Math.max(0, idleSince + IDLE_MS - now)
}

/** Name of a server: `postgresql-15.4.0` in region 1 → `postgresql-15-4-0-r1-1`. Two operators with the same decision create one server. */
export function serverName(motor: Motor, regionId: number, ordinal: number): string {
  return `${motor.replaceAll('.', '-')}-r${regionId}-${ordinal}`
}
