import { z } from 'zod'

/** A time in a body: of any zone, to be kept and shown in UTC. */
export const Time = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time, e.g. 2026-01-02T03:04:05Z' })

/** A time of Kubernetes (whole seconds) in the form of the API: RFC 3339, UTC, milliseconds. */
export function withMilliseconds(timestamp: string): string {
  return new Date(timestamp).toISOString()
}
