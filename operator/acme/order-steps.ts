import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import type { Account } from './account.ts'
import { IssuerNames } from './dns/persistent-record.ts'
import type { Directory } from './client.ts'
import { AcmeError, Problem, sentenceOf } from './acme-error.ts'
import { findOrder } from './find-order.ts'
import { checkedChain, signingRequest } from './issued-certificate.ts'
import { Order, Token, type OrderState, type StoredOrder } from './order-state.ts'

const Challenge = z.object({
  type: z.string(),
  url: z.string(),
  status: z.string().optional(),
  token: z.string().optional(),
  /** Names of the issuer; the challenge dns-persist-01 has them in place of a token. */
  'issuer-domain-names': z.unknown().optional(),
  /** The same from draft 02 on. */
  issuerDomainNames: z.unknown().optional(),
  error: Problem.optional(),
})
type Challenge = z.output<typeof Challenge>
const Authorization = z.object({
  status: z.enum(['pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked']),
  identifier: z.object({ value: z.string() }),
  challenges: z.array(Challenge),
})
type Authorization = z.output<typeof Authorization>

/** Challenge that is to be answered. */
export interface PreparedChallenge {
  /** Token that edges or DNS answer: a random one for the check that precedes the order. dns-persist-01 does not use it. */
  readonly token: string
  /** Issuer domain names of the challenge dns-persist-01; undefined before the order. */
  readonly issuers?: readonly string[] | undefined
  /** Whether the record of dns-persist-01 has a hash of the account (draft 02); undefined before the order. */
  readonly isHashed?: boolean | undefined
}

export interface StepContext {
  readonly account: Account
  readonly settings: AcmeSettings
  readonly now: () => Date
  /** Whether edges or DNS answer a challenge. False: not yet. @throws CheckError when they will not */
  readonly isAnswered: (challenge: PreparedChallenge) => Promise<boolean>
}

/** Result of a step. `againMs`: milliseconds until the next step. */
export interface Stepped {
  readonly order: StoredOrder
  readonly againMs: number
}

/** Error of an order that cannot lead to a certificate any more, so that another one must be made. */
export class OrderLostError extends AcmeError {}

/** Random token for the check that precedes an order. */
export const randomToken = (): string => randomBytes(24).toString('base64url')

/**
 * Returns the time until the next poll while the CA works, in milliseconds: what the CA asks for (at most 10 min), and at least a tenth of the
 * time that has passed, between 100 ms and 30 s. Most work takes less than a second: within the
 * first second the interval is 100 to 350 ms, whatever the CA asks for.
 * @throws OrderLostError when the CA has not finished in an hour
 */
function pollMs(state: OrderState, now: Date, retryAfterMs = 0): number {
  const age = now.getTime() - state.since
  if (age > PATIENCE_MS)
    throw new OrderLostError('acme_invalid_answer', 'the certificate authority has not finished the order in an hour')
  if (age >= 0 && age < QUICK_MS) return POLL_MS + age / 4
  return Math.max(Math.min(retryAfterMs, POLL_MAX_MS), Math.min(30_000, Math.max(POLL_MS, age / 10)))
}

const POLL_MS = 100
const QUICK_MS = 1_000
const POLL_MAX_MS = 600_000
const PATIENCE_MS = 3_600_000

/** Times of orders that are kept: more than are made within an hour. */
const PLACED_KEPT = 10

/** Makes an order at the CA. With `isRepeated` it first looks for an order that an earlier process made without storing its URL. */
export async function placeOrder(order: StoredOrder, context: StepContext, isRepeated: boolean): Promise<Stepped> {
  const { account, now } = context
  const found = isRepeated ? await findOrder(order.state.identifier, account) : undefined
  const url = found ?? (await newOrder(order.state, context))
  const at = now().getTime()
  const placed = found === undefined ? [...order.state.placed, at].slice(-PLACED_KEPT) : order.state.placed
  const state: OrderState = { ...order.state, phase: 'validate', url, placed, challenge: undefined, since: at }
  return { order: { ...order, state }, againMs: 0 }
}

async function newOrder({ identifier, replaces }: OrderState, { account, settings }: StepContext): Promise<string> {
  const { client } = account
  const directory = await client.directory()
  const { profile } = settings
  requireProfile(profile, directory)
  const payload = { identifiers: [{ type: 'dns', value: identifier }], profile }
  const post = (also: object) => client.post(directory.newOrder, { ...payload, ...also }, Order)
  const isReplacing = replaces !== undefined && directory.renewalInfo !== undefined
  const { data, location = '' } = isReplacing
    ? await post({ replaces }).catch((error: unknown) => {
        // The certificate was replaced already, or another CA issued it, which some CAs report as an internal error. An order without `replaces`
        // renews it too.
        if (error instanceof AcmeError && (!error.isTransient || error.type === 'serverInternal')) return post({})
        throw error
      })
    : await post({})
  if (!URL.canParse(location)) throw new AcmeError('acme_invalid_answer', 'the certificate authority names no URL of the order')
  requireSame(data, identifier)
  return location
}

function requireProfile(profile: string | undefined, { meta }: Directory): void {
  const known = meta?.profiles ?? {}
  if (profile === undefined || Object.hasOwn(known, profile)) return
  const names = Object.keys(known).join(', ')
  throw new OrderLostError('acme_rejected', `the certificate authority has no profile ${profile}; it has ${names || 'none'}`)
}

function requireSame({ identifiers }: Order, identifier: string): void {
  if (identifiers.length === 1 && identifiers[0]?.value === identifier) return
  throw new OrderLostError('acme_invalid_answer', 'the certificate authority has answered with an order for other names')
}

/** Takes an order that exists at the CA one step further. @throws OrderLostError when another order must be made */
export async function continueOrder(stored: StoredOrder, context: StepContext): Promise<Stepped> {
  const { account, now } = context
  const { state } = stored
  const { data: order, retryAfterMs } = await account.client.post(state.url ?? '', null, Order).catch(gone)
  requireSame(order, state.identifier)
  // Some CAs call an order invalid once its authorization has ended, although they have issued its certificate.
  if (order.certificate !== undefined) return { order: await download(stored, order, context), againMs: 0 }
  switch (order.status) {
    case 'pending':
      return validate(stored, order, context)
    case 'ready':
      await finalize(stored, order, context)
      return { order: stored, againMs: pollMs(state, now()) }
    case 'processing':
      return { order: stored, againMs: pollMs(state, now(), retryAfterMs) }
    case 'valid':
      return { order: await download(stored, order, context), againMs: 0 }
    case 'invalid':
      throw new OrderLostError('acme_rejected', whyInvalid(order, (await authorizationOf(order, context)).data))
  }
}

/** Handles an order that the CA does not know: it has expired, or the CA has lost its state. */
function gone(error: unknown): never {
  const isGone = error instanceof AcmeError && error.status === 404
  if (isGone)
    throw new OrderLostError('acme_rejected', 'the certificate authority does not know the order any more', { status: 404 })
  throw error
}

async function validate(stored: StoredOrder, order: Order, context: StepContext): Promise<Stepped> {
  const { state } = stored
  const { data: authorization, retryAfterMs } = await authorizationOf(order, context)
  if (authorization.identifier.value !== state.identifier.replace(/^\*\./, '')) {
    throw new OrderLostError(
      'acme_invalid_answer',
      'the certificate authority has answered with an authorization for another name',
    )
  }
  if (authorization.status === 'valid') return { order: stored, againMs: pollMs(state, context.now()) }
  const rejection = () => whyInvalid(order, authorization)
  if (authorization.status !== 'pending') throw new OrderLostError('acme_rejected', rejection())
  const offered = challengeIn(authorization, context.settings.challenge)
  if (state.challenge?.url === offered.url && state.challenge.answered) {
    if (offered.status === 'invalid') throw new OrderLostError('acme_rejected', rejection())
    const isLeft = offered.status === 'pending' && offered.isRejected
    return isLeft
      ? answerAgain(stored, rejection(), context)
      : { order: stored, againMs: pollMs(state, context.now(), retryAfterMs) }
  }
  return answer(stored, offered, context)
}

/** Takes over the token of a challenge, then asks the CA to validate it once it is answered. */
async function answer(
  stored: StoredOrder,
  offered: OfferedChallenge,
  { account, now, isAnswered }: StepContext,
): Promise<Stepped> {
  const { state } = stored
  const { url, token = state.token, issuers, isHashed } = offered
  if (state.challenge?.url !== url || state.token !== token) {
    const challenge = { url, answered: false }
    return { order: { ...stored, state: { ...state, token, challenge, since: now().getTime() } }, againMs: 0 }
  }
  if (!(await isAnswered({ token, issuers, isHashed }))) return { order: stored, againMs: pollMs(state, now()) }
  await account.client.post(url, {}, z.unknown())
  const answered = { ...state, challenge: { url, answered: true }, since: now().getTime() }
  return { order: { ...stored, state: answered }, againMs: POLL_MS }
}

/** Maximum number of repeated answers to a challenge, and the waits before them in milliseconds. */
const REPEATS_MAX = 5
const REPEAT_MS = 10_000

/**
 * Answers a challenge again that the CA left pending after a failed validation, as step-ca does, after 10 s, doubling.
 * @throws OrderLostError after the last repetition
 */
async function answerAgain(stored: StoredOrder, lastError: string, { account, now }: StepContext): Promise<Stepped> {
  const { state } = stored
  const { url = '', repeats = 0, repeatAt } = state.challenge ?? {}
  if (repeats >= REPEATS_MAX) throw new OrderLostError('acme_rejected', lastError)
  const waitMs = REPEAT_MS * 2 ** repeats
  const again = (challenge: OrderState['challenge'], againMs: number): Stepped => ({
    order: { ...stored, state: { ...state, lastError, challenge } },
    againMs,
  })
  if (repeatAt === undefined) return again({ url, answered: true, repeats, repeatAt: now().getTime() + waitMs }, waitMs)
  const inMs = repeatAt - now().getTime()
  // If more than `waitMs` remains, the clock was set back.
  if (inMs > 0 && inMs <= waitMs) return { order: stored, againMs: inMs }
  await account.client.post(url, {}, z.unknown())
  return again({ url, answered: true, repeats: repeats + 1 }, POLL_MS)
}

const authorizationOf = ({ authorizations: [url = ''] }: Order, { account }: StepContext) =>
  account.client.post(url, null, Authorization)

interface OfferedChallenge extends Partial<PreparedChallenge> {
  readonly url: string
  readonly status: string | undefined
  /** Whether the CA names an error of the challenge. */
  readonly isRejected: boolean
}

function challengeIn({ challenges }: Authorization, type: AcmeSettings['challenge']): OfferedChallenge {
  const challenge = challenges.find((each) => each.type === type)
  const found = challenge && offeredBy(challenge)
  if (found) return found
  const offered = challenges.map((each) => each.type).join(', ')
  throw new OrderLostError(
    'acme_rejected',
    `the certificate authority offers no challenge ${type}; it offers ${offered || 'none'}`,
  )
}

/** Returns a challenge of an authorization; undefined when it has no valid token. */
function offeredBy(challenge: Challenge): OfferedChallenge | undefined {
  const about = { url: challenge.url, status: challenge.status, isRejected: challenge.error !== undefined }
  if (challenge.type === 'dns-persist-01') {
    const { issuerDomainNames = challenge['issuer-domain-names'] } = challenge
    return { ...about, issuers: issuersOf(issuerDomainNames), isHashed: challenge.issuerDomainNames !== undefined }
  }
  const { data: token } = Token.safeParse(challenge.token)
  return token === undefined ? undefined : { ...about, token }
}

function issuersOf(names: unknown): readonly string[] {
  const { data } = IssuerNames.safeParse(names)
  if (data) return data
  throw new OrderLostError('acme_invalid_answer', 'the certificate authority has sent invalid issuer-domain-names')
}

async function finalize({ state, key }: StoredOrder, { finalize: url }: Order, { account }: StepContext): Promise<void> {
  try {
    await account.client.post(url, { csr: await signingRequest(state.identifier, key) }, z.unknown())
  } catch (error) {
    if (!(error instanceof AcmeError) || error.isTransient) throw error
    // Any rejection but "order not ready" means that this order will not lead to a certificate.
    if (error.type !== 'orderNotReady') throw new OrderLostError('acme_rejected', error.message, { cause: error })
  }
}

async function download({ state, key }: StoredOrder, order: Order, { account, now }: StepContext): Promise<StoredOrder> {
  if (order.certificate === undefined) {
    throw new OrderLostError('acme_invalid_answer', 'the certificate authority names no URL of the certificate')
  }
  const { data } = await account.client.post(order.certificate, null, z.string())
  let certificate: string
  try {
    certificate = checkedChain(data, { name: state.identifier, key, now: now() })
  } catch (error) {
    // Another download would return the same certificate.
    throw new OrderLostError('acme_invalid_answer', error instanceof Error ? error.message : String(error), { cause: error })
  }
  const done = { url: undefined, challenge: undefined, next: undefined, lastError: undefined }
  return { key, certificate, state: { ...state, ...done, phase: 'issued', failures: 0, waits: false } }
}

/** Returns the reason why an order is invalid. The error of the failed challenge is preferred: it says more than that of the order. */
function whyInvalid(order: Order, { challenges, status, identifier }: Authorization): string {
  const problem = challenges.find(({ error }) => error)?.error ?? order.error
  const text = problem ? sentenceOf(problem) : `the authorization is ${status}`
  return `the certificate authority could not verify ${identifier.value}: ${text}`
}
