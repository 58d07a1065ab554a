import { getDomain } from 'tldts'
import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
import { decodeSecret } from '../secret-data.ts'
import { accountSecret } from './account.ts'

const HOUR_MS = 3_600_000
/** Window of the budget, in hours. */
const WINDOW_HOURS = 7 * 24
const WINDOW_MS = WINDOW_HOURS * HOUR_MS
/** Default budget at Let's Encrypt, which issues 50; the difference is left for other names of the registered domain. */
const LETS_ENCRYPT_BUDGET = 40
const LETS_ENCRYPT = /(^|\.)api\.letsencrypt\.org$/
/** Default budget at other CAs, whose limits are not known: practically none. */
const OTHER_BUDGET = 100_000

/** Numbers of first certificates: registered domain → organization → hour since the epoch → number. */
const Counted = z.record(z.string(), z.record(z.string(), z.record(z.string(), z.int().min(0))))
type Counted = z.output<typeof Counted>

export interface BudgetRequest {
  readonly settings: AcmeSettings
  /** Domain name of the certificate. */
  readonly identifier: string
  /** Organization of the tunnel. */
  readonly organization: string
  /** Whether the installation has several organizations. */
  readonly isShared: boolean
}

/** Rejection of a certificate. `nextAt`: time from which one may be possible again, in milliseconds since the epoch. */
export interface BudgetRefusal {
  readonly message: string
  readonly nextAt: number
}

/**
 * Budget of first certificates within 7 days per registered domain (by the Public Suffix List). The counts are in a Secret, so that a restart
 * does not reset them. Renewals are not counted: certificate authorities exempt them. Where an installation has several organizations, each
 * may use at most half, so that one tenant cannot use up the budget of all.
 */
export interface Budget {
  /** Counts a certificate. Returns a rejection, without counting, when the budget is used up. */
  take(request: BudgetRequest): Promise<BudgetRefusal | undefined>
  /** Returns the number of certificates that are left for a registered domain. @throws StoreError */
  left(settings: AcmeSettings, domain: string): Promise<number>
}

/** Returns the maximum number of first certificates within 7 days. */
export const budgetOf = ({ weeklyBudget, directoryUrl }: AcmeSettings): number =>
  weeklyBudget ?? (LETS_ENCRYPT.test(URL.parse(directoryUrl)?.hostname ?? '') ? LETS_ENCRYPT_BUDGET : OTHER_BUDGET)

/** Returns the registered domain of a name; the name itself when it is a public suffix or has no registered domain. */
export const registeredDomain = (name: string): string =>
  getDomain(name.replace(/^\*\./, ''), { allowPrivateDomains: true }) ?? name

const countedIn = (text: string): Counted => Counted.safeParse(JSON.parse(text)).data ?? {}

const secretOf = (settings: AcmeSettings): string => accountSecret(settings).replace('account', 'budget')

export function createCertificateBudget({ store, now }: { readonly store: Store; readonly now: () => Date }): Budget {
  const known = new Map<string, Counted>()
  /** End of the last call of `take`. Calls run one after the other: of two at once only one would be counted. */
  let last: Promise<unknown> = Promise.resolve()

  async function read(settings: AcmeSettings): Promise<Counted> {
    const name = secretOf(settings)
    const cached = known.get(name)
    if (cached) return cached
    const { counted = '{}' } = await keptSecret(store, name, async () => ({ counted: '{}' }))
    const parsed = countedIn(counted)
    known.set(name, parsed)
    return parsed
  }

  /** Counts of a Secret, which is not created: a process that is not the leader reads them for its metrics. */
  async function stored(name: string): Promise<Counted> {
    const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
    return countedIn((secret && decodeSecret(secret.data, 'counted')) ?? '{}')
  }

  async function take(request: BudgetRequest): Promise<BudgetRefusal | undefined> {
    const { settings, identifier, organization } = request
    const domain = registeredDomain(identifier)
    // The parent of the name is a public suffix, so the name is a registered domain with a limit of its own.
    if (domain === identifier) return undefined
    const hour = Math.floor(now().getTime() / HOUR_MS)
    const all = pruned(await read(settings), hour)
    const ofDomain = all[domain] ?? {}
    const own = ofDomain[organization] ?? {}
    const refusal = refusalOf(request, { domain, ofDomain, own })
    if (refusal) return refusal
    const counted = { ...own, [hour]: (own[String(hour)] ?? 0) + 1 }
    const next = { ...all, [domain]: { ...ofDomain, [organization]: counted } }
    known.set(secretOf(settings), next)
    await keepSecret(store, secretOf(settings), { counted: JSON.stringify(next) })
    return undefined
  }

  return {
    take(request) {
      const taken = last.then(
        () => take(request),
        () => take(request),
      )
      last = taken
      return taken
    },
    async left(settings, domain) {
      const hour = Math.floor(now().getTime() / HOUR_MS)
      const name = secretOf(settings)
      const all = pruned(known.get(name) ?? (await stored(name)), hour)
      return Math.max(0, budgetOf(settings) - sumOf(Object.values(all[domain] ?? {})))
    },
  }
}

interface CountedDomain {
  readonly domain: string
  readonly ofDomain: Counted[string]
  /** Counts of the organization. */
  readonly own: Readonly<Record<string, number>>
}

/** Returns the rejection of one more certificate for a domain; undefined when the budget has room. */
function refusalOf({ settings, isShared }: BudgetRequest, { domain, ofDomain, own }: CountedDomain): BudgetRefusal | undefined {
  const max = budgetOf(settings)
  const all = Object.values(ofDomain)
  const sentence = (what: string, count: number) =>
    `the budget ${what}of ${count} new certificates within 7 days for ${domain} is used up`
  if (sumOf(all) >= max) return { message: sentence('', max), nextAt: oldestOf(all) + WINDOW_MS }
  const share = Math.ceil(max / 2)
  if (!isShared || sumOf([own]) < share) return undefined
  return { message: sentence('of the organization, ', share), nextAt: oldestOf([own]) + WINDOW_MS }
}

/** Returns the end of the hour with the oldest counts, in milliseconds since the epoch. */
const oldestOf = (counts: readonly Readonly<Record<string, number>>[]): number =>
  (Math.min(...counts.flatMap((hours) => Object.keys(hours).map(Number))) + 1) * HOUR_MS

const sumOf = (counts: readonly Readonly<Record<string, number>>[]): number =>
  counts.flatMap((hours) => Object.values(hours)).reduce((sum, count) => sum + count, 0)

/** Counts of the window that ends with `hour`. Counts of later hours stay: the clock may have been set back. */
function pruned(all: Counted, hour: number): Counted {
  const inWindow = (hours: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(hours).filter(([at]) => Number(at) > hour - WINDOW_HOURS - 1))
  const ofDomain = (organizations: Counted[string]) =>
    Object.fromEntries(
      Object.entries(organizations)
        .map(([name, hours]) => [name, inWindow(hours)] as const)
        .filter(([, hours]) => Object.keys(hours).length > 0),
    )
  return Object.fromEntries(
    Object.entries(all)
      .map(([domain, organizations]) => [domain, ofDomain(organizations)] as const)
      .filter(([, organizations]) => Object.keys(organizations).length > 0),
  )
}
