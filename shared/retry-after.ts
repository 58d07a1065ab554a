/** Default of the maximum wait that a Retry-After may ask for, in milliseconds. */
const RETRY_MAX_MS = 8 * 86_400_000

/** Returns the milliseconds of a Retry-After field (RFC 9110, section 10.2.3), at most `maxMs`; undefined when it is absent or invalid. */
export function retryAfterMs(field: string | undefined, now: number, maxMs: number = RETRY_MAX_MS): number | undefined {
  if (field === undefined) return undefined
  const ms = /^\d{1,10}$/.test(field) ? Number(field) * 1_000 : Date.parse(field) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), maxMs)
}
