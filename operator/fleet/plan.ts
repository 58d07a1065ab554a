import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import { conditionOf } from '../../store/conditions.ts'

/** One motor of a region, with what runs of it. */
export interface ObservedMotor {
  readonly motor: Motor
  readonly warm: boolean
  /** Places that a warm motor keeps free, so that a burst does not wait for a server to start. */
  readonly headroom: number
  /** Places still free on its servers that are of use ({@link usefulForMs}). */
  readonly free: number
  /** Instances that wait for a place. */
  readonly waiting: number
  /** Ordinals of the servers there are. */
  readonly ordinals: readonly number[]
}

/** A server that was up comes back by itself from a restart, or on another node, within this time. */
const RESTART_MS = 30_000

/**
 * For how long, in ms from `now` (ms since the epoch), free places of a server count if nothing changes. One that has never been up counts
 * for as long as it takes: where it cannot start, another could not either. One that was up and does not come back counts no more. Pure.
 */
export function usefulForMs(server: DatabaseServer, now: number): number {
  if (server.metadata.deletionTimestamp !== undefined) return 0
  const ready = conditionOf(server, 'Ready')
  if (!ready || ready.status === 'True' || server.status?.engineVersion === undefined) return Infinity
  return Math.max(0, Date.parse(ready.lastTransitionTime) + RESTART_MS - now)
}

/** Ordinal of the server to make, or undefined. A warm motor keeps some places free; a cold one gets a server when asked for. Pure. */
export function nextServer({ warm, headroom, free, waiting, ordinals }: ObservedMotor): number | undefined {
  const wanted = Math.max(waiting, warm ? headroom : 0)
  if (free >= wanted) return undefined
  let ordinal = 1
  while (ordinals.includes(ordinal)) ordinal += 1
  return ordinal
}

/** `postgresql-15.4.0` in region 1 → `postgresql-15-4-0-r1-1`: two operators that decide alike make one server. */
export function serverName(motor: Motor, regionId: number, ordinal: number): string {
  return `${motor.replaceAll('.', '-')}-r${regionId}-${ordinal}`
}
