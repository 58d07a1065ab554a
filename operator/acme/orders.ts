import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import type { Key } from '../../store/port.ts'
import { stepDone } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Accounts } from './account.ts'
import { AcmeError } from './acme-error.ts'
import type { Budget } from './budget.ts'
import type { OrderState, OrderStore, StoredOrder } from './order-state.ts'
import { failedState, isAccountGone, isOpen, isReported, ORDER_BACKOFF, type OrderResult, resultOf } from './order-failure.ts'
import { createPace } from './pace.ts'
import { type PreparedChallenge, continueOrder, placeOrder, randomToken, type StepContext, type Stepped } from './order-steps.ts'

/** Certificate that is to be obtained. */
export interface OrderRequest {
  /** Namespace in whose turn the order is processed; namespaces take turns. mooring-system for a wildcard certificate. */
  readonly namespace: string
  /** Name of the certificate's Secret. */
  readonly certificate: string
  /** Domain name of the certificate. */
  readonly identifier: string
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly settings: AcmeSettings
  /** Port that visitors of the endpoint use for HTTP. */
  readonly publicHttpPort: number
  /** Port that visitors of the endpoint use for HTTPS. */
  readonly publicHttpsPort: number
  /** Organization in whose budget the certificate counts. */
  readonly organization: string
  /** Whether that organization may use only its share of the budget, because there are several. */
  readonly isShared: boolean
  /** Whether the tunnel has a good certificate meanwhile, from whichever CA. */
  readonly isRenewal: boolean
  /** Whether the CA of the order has issued a certificate for the name before. Such orders do not count in the budget. */
  readonly isRenewalOfCa: boolean
  /** Identifier of the certificate that is replaced (RFC 9773, section 5). */
  readonly replaces: string | undefined
}

/** Returns whether edges or DNS answer a challenge. False: not yet. @throws CheckError when the check shows that they will not */
export type IsChallengeReady = (
  request: OrderRequest,
  state: Pick<OrderState, 'since' | 'phase' | 'checks'>,
  challenge: PreparedChallenge,
) => Promise<boolean>

export interface OrderRunnerDeps {
  readonly orders: OrderStore
  readonly accounts: Accounts
  readonly budget: Budget
  readonly isAnswered: IsChallengeReady
  readonly now: () => Date
  readonly random: () => number
  /** Certificates whose next attempt begins at once. The runner removes a name when the attempt begins. */
  readonly hurried: Set<string>
  /** Returns the request for a certificate; undefined when the certificate is no longer needed. */
  readonly requestOf: (certificate: string) => OrderRequest | undefined
  /** Called after each change of an order. */
  readonly onChange: (certificate: string, order: StoredOrder) => void
  readonly onResult: (result: OrderResult) => void
}

/** Maximum pause of an account after one response, in milliseconds. The limit may concern one name only. */
const PAUSE_MAX_MS = 3_600_000
/** Wait in milliseconds after {@link STEPS_MAX} steps. */
const NEXT_MS = 1_000
/**
 * Time in milliseconds between the starts of two renewals. A renewal has days, and takes some 30 ms of a processor: many that are due together
 * must not delay the visitors of an embedded Mooring.
 */
const RENEWAL_EVERY_MS = 200
/** Maximum number of steps in one reconcile; an order needs fewer. A CA that keeps changing its answers cannot hold up other orders. */
const STEPS_MAX = 12

/** Creates the function that takes the order for a certificate as far as possible now. Each step is stored before the next one begins. */
export function createOrderRunner(deps: OrderRunnerDeps): (key: Key) => Promise<Outcome> {
  const { orders, accounts, budget, now } = deps
  /** Certificates whose check this process has finished, so that no order exists at the CA yet. An earlier process may have made one. */
  const fresh = new Set<string>()
  /**
   * Certificates whose validation this process has started, with the thumbprint of the account's key then. After a restart an order is not here:
   * in embedded mode its edge was away for a while.
   */
  const watched = new Map<string, string>()
  const renewals = createPace({ everyMs: RENEWAL_EVERY_MS, now: () => now().getTime() })

  return async function runOrder({ name: certificate }) {
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      const request = deps.requestOf(certificate)
      if (!request) return ended(certificate, 'NotWanted')
      const queued = queuedRenewal(request)
      if (queued) return queued
      const stored = await opened(request)
      if (stored.state.phase === 'issued') {
        deps.onChange(certificate, stored)
        return ended(certificate, 'Issued')
      }
      const waitMs = deps.hurried.delete(certificate) ? 0 : remainingMs(stored.state)
      if (waitMs > 0) {
        deps.onChange(certificate, stored)
        return { result: 'waiting', reason: stored.state.waits ? 'OrderWaits' : 'AttemptFailed', requeueAfterMs: waitMs }
      }
      const { order, againMs } = await attempted(request, stored)
      if (order !== stored) await saved(certificate, order)
      if (againMs > 0) return { result: 'waiting', reason: 'Ordering', requeueAfterMs: againMs }
    }
    return { result: 'waiting', reason: 'Ordering', requeueAfterMs: NEXT_MS }
  }

  function ended(certificate: string, reason: string): Outcome {
    renewals.leave(certificate)
    return { result: 'settled', reason }
  }

  /** Returns the wait of a renewal for its turn; undefined when it may go on. */
  function queuedRenewal({ isRenewal, certificate }: OrderRequest): Outcome | undefined {
    const waitMs = isRenewal ? renewals.waitMs(certificate) : 0
    return waitMs > 0 ? { result: 'waiting', reason: 'RenewalQueued', requeueAfterMs: waitMs } : undefined
  }

  async function saved(certificate: string, order: StoredOrder): Promise<void> {
    const written = await orders.write(certificate, order)
    if (!written) return
    deps.onChange(certificate, order)
    const { phase, challenge } = order.state
    stepDone(`order.${challenge?.answered ? 'answered' : challenge ? 'challenge' : phase}`, certificate)
  }

  /** Reads the order. Begins another one when there is none, or when it is for another directory or name. */
  async function opened(request: OrderRequest): Promise<StoredOrder> {
    const { certificate, identifier, settings } = request
    const stored = await orders.read(certificate)
    const isSame = stored?.state.directory === settings.directoryUrl && stored.state.identifier === identifier
    if (stored && isSame) return stored
    const state: OrderState = {
      phase: 'check',
      directory: settings.directoryUrl,
      identifier,
      token: randomToken(),
      since: now().getTime(),
      failures: 0,
      checks: 0,
      placed: [],
      waits: false,
      counted: request.isRenewalOfCa,
      ...(request.replaces !== undefined && { replaces: request.replaces }),
    }
    const created = await orders.create(certificate, state, request.endpoint)
    if (!deps.requestOf(certificate)) await orders.remove(certificate)
    deps.onChange(certificate, created)
    stepDone('order.check', certificate)
    return created
  }

  /** Milliseconds until the next attempt; 0 or less when it is due. */
  function remainingMs({ next }: OrderState): number {
    const inMs = (next?.at ?? 0) - now().getTime()
    // If more than `waitMs` remains, the clock was set back.
    return inMs > (next?.waitMs ?? 0) ? 0 : inMs
  }

  async function attempted(request: OrderRequest, stored: StoredOrder): Promise<Stepped> {
    try {
      return await step(request, cleared(stored, now().getTime()))
    } catch (error) {
      // The controller logs and repeats any other failure, such as that of a write to the store.
      if (!isReported(error)) throw error
      const order = await failed(request, stored, error)
      return { order, againMs: Math.max(1, remainingMs(order.state)) }
    }
  }

  async function step(request: OrderRequest, stored: StoredOrder): Promise<Stepped> {
    const { state } = stored
    if (state.phase === 'validate') return validated(request, stored)
    const waiting = await hindered(request, stored)
    if (waiting) return waiting
    if (state.phase === 'order') {
      const placed = await placeOrder(stored, await contextOf(request, stored), !fresh.delete(request.certificate))
      stepDone('order.sent', request.certificate)
      return placed
    }
    const age = now().getTime() - state.since
    if (!(await deps.isAnswered(request, state, state))) return { order: stored, againMs: 50 + Math.max(0, age) / 10 }
    fresh.add(request.certificate)
    return { order: { ...stored, state: { ...state, phase: 'order', since: now().getTime() } }, againMs: 0 }
  }

  async function validated(request: OrderRequest, stored: StoredOrder): Promise<Stepped> {
    const { certificate, settings } = request
    const thumbprint = stored.state.challenge?.answered === false ? await accounts.thumbprint(settings) : ''
    const stepped = await continueOrder(stored, await contextOf(request, stored))
    const { phase, challenge } = stepped.order.state
    if (challenge?.answered === true && stored.state.challenge?.answered !== true) watched.set(certificate, thumbprint)
    if (phase === 'issued') {
      watched.delete(certificate)
      deps.onResult('issued')
    }
    return stepped
  }

  async function contextOf(request: OrderRequest, { state }: StoredOrder): Promise<StepContext> {
    const { settings } = request
    const account = await accounts.open(settings)
    return { account, settings, now, isAnswered: (challenge) => deps.isAnswered(request, state, challenge) }
  }

  /** Returns the wait for the account or the budget; undefined when the order may go on. Counts the certificate in the budget. */
  async function hindered(request: OrderRequest, stored: StoredOrder): Promise<Stepped | undefined> {
    const { settings, identifier, organization, isShared } = request
    const until = await accounts.pausedUntil(settings)
    const pauseMs = until - now().getTime()
    if (pauseMs > 0 && pauseMs <= PAUSE_MAX_MS) {
      return waitingFor(stored, 'the certificate authority has asked to send fewer requests', pauseMs * (1 + deps.random() / 10))
    }
    if (stored.state.phase !== 'order') return undefined
    const { recent, isLimit } = placedWithin(stored.state, now().getTime())
    if (isLimit) return waitingFor(stored, stored.state.lastError ?? TOO_MANY, (recent[0] ?? 0) + HOUR_MS - now().getTime())
    if (stored.state.counted) return undefined
    const refusal = await budget.take({ settings, identifier, organization, isShared })
    if (refusal) {
      deps.onResult('over_budget')
      return waitingFor(stored, refusal.message, refusal.nextAt - now().getTime())
    }
    const state = { ...stored.state, counted: true }
    return { order: { ...stored, state }, againMs: 0 }
  }

  function waitingFor(stored: StoredOrder, lastError: string, ms: number): Stepped {
    const waitMs = Math.max(1_000, Math.ceil(ms))
    const state = { ...stored.state, lastError, waits: true, next: { at: now().getTime() + waitMs, waitMs } }
    return { order: { ...stored, state }, againMs: waitMs }
  }

  async function failed({ certificate, settings }: OrderRequest, stored: StoredOrder, error: unknown): Promise<StoredOrder> {
    if (error instanceof AcmeError) await noteForAccount(settings, error)
    deps.onResult(resultOf(error))
    // The CA asks for the thumbprint of the present key: it may have found another one if the key has changed meanwhile.
    const isInterrupted =
      stored.state.challenge?.answered === true && watched.get(certificate) !== (await accounts.thumbprint(settings))
    if (!isOpen(error)) watched.delete(certificate)
    return { ...stored, state: failedState(stored.state, error, { now: now().getTime(), random: deps.random, isInterrupted }) }
  }

  async function noteForAccount(settings: AcmeSettings, error: AcmeError): Promise<void> {
    if (isAccountGone(error)) await accounts.forget(settings)
    if (!error.isLimit) return
    const pauseMs = Math.min(error.retryAfterMs ?? ORDER_BACKOFF.baseMs, PAUSE_MAX_MS)
    await accounts.pause(settings, now().getTime() + pauseMs)
  }
}

const HOUR_MS = 3_600_000
/** Maximum number of orders for one name within an hour; Let's Encrypt allows five failed validations. */
const PLACED_MAX = 4
const TOO_MANY = `${PLACED_MAX} orders for this name were made within the last hour`

/** Returns the times of the orders within the last hour, oldest first. A time ahead is from before the clock was set back. */
export function placedWithin(
  { placed }: Pick<OrderState, 'placed'>,
  now: number,
): { recent: readonly number[]; isLimit: boolean } {
  const recent = placed.filter((at) => at <= now && now - at < HOUR_MS)
  return { recent, isLimit: recent.length >= PLACED_MAX }
}

/** Returns the order without `next` and `waits`, because its wait is over. */
function cleared(stored: StoredOrder, now: number): StoredOrder {
  const { next, ...state } = stored.state
  return next ? { ...stored, state: { ...state, waits: false, since: now } } : stored
}
