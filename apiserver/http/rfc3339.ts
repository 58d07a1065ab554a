import { z } from 'zod'

/** Time in a body, of any zone; stored and shown in UTC. */
export const Time = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time, e.g. 2026-01-02T03:04:05Z' })

/** Converts a Kubernetes time (whole seconds) to the form of the API: RFC 3339, UTC, milliseconds. */
export function withMilliseconds(timestamp: string): string {
  return new Date(timestamp).toISOString()
}
