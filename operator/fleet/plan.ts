import type { Motor } from '../../crds/motor.ts'

/** One motor of a region, with what runs of it. */
export interface MotorWorld {
  readonly motor: Motor
  readonly warm: boolean
  /** Places that a warm motor keeps free, so that a burst does not wait for a server to start. */
  readonly headroom: number
  /** Places still free on its servers, those that are starting included. */
  readonly free: number
  /** Instances that wait for a place. */
  readonly waiting: number
  /** Ordinals of the servers there are. */
  readonly ordinals: readonly number[]
}

/** Ordinal of the server to make, or undefined. A warm motor keeps some places free; a cold one gets a server when asked for. Pure. */
export function nextServer({ warm, headroom, free, waiting, ordinals }: MotorWorld): number | undefined {
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
