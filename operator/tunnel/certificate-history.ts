import type { CertificateEvent, TunnelCertificate } from '../../crds/tunnel.ts'

/** Maximum number of events in a status. */
const EVENTS_MAX = 10
const ERROR_MAX = 300

/** Status of a certificate as a merge patch: null removes a field. */
type Patch = { readonly [Name in keyof TunnelCertificate]?: TunnelCertificate[Name] | null }

/**
 * Adds to the status of a certificate what has happened to it since the status `before`: that it was obtained, has expired, or that an attempt
 * failed. The newest event is first. An attempt that fails for the same reason as the last one only changes the time and the number of its
 * event. Pure.
 */
export function withHistory(before: TunnelCertificate | undefined, after: TunnelCertificate, now: number): TunnelCertificate {
  const { history = [] } = before ?? {}
  const news = eventOf(before, after, new Date(now).toISOString())
  if (!news) return history.length > 0 ? { ...after, history } : after
  const [last, ...earlier] = history
  const isRepeated = news.event === 'failed' && last?.event === 'failed' && last.error === news.error
  const kept = isRepeated ? [{ ...news, attempts: (last.attempts ?? 1) + 1 }, ...earlier] : [news, ...history]
  return { ...after, history: kept.slice(0, EVENTS_MAX) }
}

function eventOf(before: Patch = {}, after: Patch, at: string): CertificateEvent | undefined {
  if (isObtained(before, after)) return { at: after.obtainedAt ?? at, event: 'obtained', ...about(after), ...endOf(after) }
  if (isExpired(before, after)) return { at, event: 'expired', ...about(after) }
  const error = newError(before, after)
  return error === undefined ? undefined : { at, event: 'failed', error }
}

const isObtained = (before: Patch, { status, obtainedAt }: Patch): boolean =>
  status === 'valid' && obtainedAt !== before.obtainedAt

const isExpired = (before: Patch, { status }: Patch): boolean =>
  status === 'expired' && before.status !== undefined && before.status !== 'expired'

/** Error of an attempt that the status `before` does not have yet; undefined when there is none, or when no attempt follows. */
function newError(before: Patch, { lastError, nextAttemptAt }: Patch): string | undefined {
  if (!lastError || !nextAttemptAt) return undefined
  const isKnown = lastError === before.lastError && nextAttemptAt === before.nextAttemptAt
  return isKnown ? undefined : lastError.slice(0, ERROR_MAX)
}

const about = ({ issuer }: Patch) => (issuer ? { issuer } : {})
const endOf = ({ expiresAt }: Patch) => (expiresAt ? { expiresAt } : {})
