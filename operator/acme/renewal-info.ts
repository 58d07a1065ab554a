import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Accounts } from './account.ts'

/** Renewal information of a certificate (RFC 9773, section 4.2). */
const RenewalInfo = z.object({
  suggestedWindow: z.object({ start: z.iso.datetime({ offset: true }), end: z.iso.datetime({ offset: true }) }),
})

/** Certificate whose renewal information is followed. */
export interface Followed {
  /** Name of the certificate's Secret. */
  readonly certificate: string
  /** Identifier of the certificate (RFC 9773, section 4.1). */
  readonly id: string
  readonly settings: AcmeSettings
}

/** Bounds of the interval of polls, which the CA names, and in the middle its default of 6 h (RFC 9773, section 4.3.2). */
const [POLL_MIN_MS, POLL_MS, POLL_MAX_MS] = [60_000, 6 * 3_600_000, 86_400_000]

/** Times at which CAs suggest to renew certificates. They are in memory only: after a restart the operator asks again. */
export interface RenewalInfos {
  /** Returns the suggested time of the renewal in milliseconds since the epoch; undefined when the CA has suggested none. */
  renewAt(id: string): number | undefined
  /** Asks the CA about a certificate. */
  poll(followed: Followed): Promise<Outcome>
  forget(id: string): void
}

export function createRenewalInfos({
  accounts,
  onChange,
}: {
  readonly accounts: Pick<Accounts, 'open'>
  /** Called with the name of the certificate's Secret when its time changes. */
  readonly onChange: (certificate: string) => void
}): RenewalInfos {
  const times = new Map<string, number>()

  async function poll({ certificate, id, settings }: Followed): Promise<Outcome> {
    const { client } = await accounts.open(settings)
    const { renewalInfo } = await client.directory()
    if (renewalInfo === undefined) return { result: 'settled', reason: 'NoRenewalInfo', requeueAfterMs: POLL_MAX_MS }
    const { data, retryAfterMs = POLL_MS } = await client.get(`${renewalInfo}/${id}`, RenewalInfo)
    const renewAt = timeWithin(data.suggestedWindow, id)
    if (times.get(id) !== renewAt) {
      if (renewAt === undefined) times.delete(id)
      else times.set(id, renewAt)
      onChange(certificate)
    }
    const requeueAfterMs = Math.min(POLL_MAX_MS, Math.max(POLL_MIN_MS, retryAfterMs))
    return { result: 'settled', reason: 'RenewalInfoKnown', requeueAfterMs }
  }

  return { renewAt: (id) => times.get(id), poll, forget: (id) => void times.delete(id) }
}

/** Returns a time within a window, which depends on the certificate's `id` alone. Returns undefined for a window that ends before it begins. */
export function timeWithin(window: { readonly start: string; readonly end: string }, id: string): number | undefined {
  const [start, end] = [Date.parse(window.start), Date.parse(window.end)]
  if (!(end >= start)) return undefined
  const share = createHash('sha256').update(id).digest().readUInt32BE() / 2 ** 32
  return start + (end - start) * share
}
