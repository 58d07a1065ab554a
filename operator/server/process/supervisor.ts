import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Backoff, backoffMs } from '../../../shared/timers.ts'
import { MooringError, codeOf } from '../../../shared/errors.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { AdminCredentials, ServerState } from '../runtime.ts'
import type { Serving } from './bring-up.ts'
import type { LoginAnswer } from './programs/program.ts'

const PROBE_MS = 25
/** Polling interval of a slow start: recovery after a crash can take minutes. */
const SLOW_PROBE_MS = 250
const SLOW_AFTER_MS = 5000
/** Running time after which the count of failures starts anew. */
const STEADY_MS = 60_000
/** Wait before a failed server is started again. */
export const RESTART_BACKOFF: Backoff = { baseMs: 250, maxMs: 30_000 }

export interface SupervisorDeps {
  /** Host for callers. */
  readonly host: string
  readonly admin: () => Promise<Pick<AdminTarget, 'host' | 'ca'>>
  readonly bringUp: (credentials: AdminCredentials, signal: AbortSignal) => Promise<Serving>
  readonly logIn: (target: AdminTarget) => Promise<LoginAnswer>
  readonly lastOutput: () => Promise<string>
  readonly changed: () => void
  readonly logger: Logger
}

/**
 * Keeps one server running.
 *
 *     absent ─ensure─▶ starting ─login accepted─▶ running
 *                       ▲    │                      │
 *        ensure, once   │    └─ error, exit ──┐     │ exit
 *        back-off ended │                     ▼     ▼
 *                       └──────────────────── failed
 *
 * `release` stops the supervision and leaves the process running.
 */
export class Supervisor {
  readonly #deps: SupervisorDeps
  readonly #released = new AbortController()
  #state: ServerState = { phase: 'absent' }
  #bringing: Promise<unknown> = Promise.resolve()
  #serving: Serving | undefined
  #runningSince: number | undefined
  #failures = 0
  #retryAt = 0

  constructor(deps: SupervisorDeps) {
    this.#deps = deps
  }

  /** Returns the server's state; starts the server if it is absent or due for a restart. */
  ensure(credentials: AdminCredentials): ServerState {
    const { phase } = this.#state
    const due = phase === 'absent' || (phase === 'failed' && performance.now() >= this.#retryAt)
    if (due && !this.#released.signal.aborted) {
      this.#state = { phase: 'starting' }
      void this.#start(credentials)
    }
    return this.#state
  }

  /** Ends the supervision. Resolves when no step of a start is under way. */
  async release(): Promise<void> {
    this.#released.abort()
    await this.#bringing
    this.#state = { phase: 'absent' }
  }

  async #start(credentials: AdminCredentials): Promise<void> {
    const { signal } = this.#released
    try {
      const bringing = this.#deps.bringUp(credentials, signal)
      this.#bringing = bringing.catch(() => undefined)
      const serving = await bringing
      this.#serving = serving
      void serving.exited.then(() => this.#exited(serving))
      await this.#untilItAnswers(serving, credentials)
    } catch (error) {
      if (!signal.aborted) this.#fail(error)
    }
  }

  async #untilItAnswers(serving: Serving, credentials: AdminCredentials): Promise<void> {
    const begin = performance.now()
    const admin = { ...(await this.#deps.admin()), port: serving.port }
    const { signal } = this.#released
    while (this.#isServing(serving)) {
      const answer = await this.#deps.logIn({ ...admin, ...credentials })
      if (!this.#isServing(serving)) return
      if (answer.login === 'refused') throw new MooringError('admin_refused', `it rejects the admin's login (${answer.code})`)
      if (answer.login === 'accepted') {
        this.#runningSince = performance.now()
        this.#set({ phase: 'running', host: this.#deps.host, port: serving.port, admin })
        return
      }
      const waited = performance.now() - begin
      await delay(waited > SLOW_AFTER_MS ? SLOW_PROBE_MS : PROBE_MS, undefined, { signal })
    }
  }

  #isServing(serving: Serving): boolean {
    return this.#serving === serving && !this.#released.signal.aborted
  }

  async #exited(serving: Serving): Promise<void> {
    if (!this.#isServing(serving)) return
    this.#serving = undefined
    const words = await this.#deps.lastOutput()
    this.#fail(new MooringError('engine_exited', words === '' ? 'it ended without output' : `it ended: ${words}`))
  }

  #fail(error: unknown): void {
    if (this.#runningSince !== undefined && performance.now() - this.#runningSince > STEADY_MS) this.#failures = 0
    this.#runningSince = undefined
    this.#serving = undefined
    this.#failures += 1
    const wait = backoffMs(RESTART_BACKOFF, this.#failures)
    this.#retryAt = performance.now() + wait
    this.#deps.logger.warn({ err: error, failures: this.#failures }, 'database server failed')
    this.#set({ phase: 'failed', ...explain(error) })
    setTimeout(() => {
      // A timer may fire a fraction of a millisecond early; `ensure` would then refuse the restart, and no later event would repeat it.
      this.#retryAt = 0
      if (!this.#released.signal.aborted) this.#deps.changed()
    }, wait).unref()
  }

  #set(state: ServerState): void {
    this.#state = state
    this.#deps.changed()
  }
}

const UNAVAILABLE = new Set<string | undefined>(['engine_not_installed', 'unsafe_directory', 'no_engine_user'])

function explain(error: unknown): { reason: 'MotorUnavailable' | 'Crashed'; message: string } {
  const code = codeOf(error)
  const message = error instanceof MooringError ? error.message : `it could not be started (${code ?? 'unexpected error'})`
  return { reason: UNAVAILABLE.has(code) ? 'MotorUnavailable' : 'Crashed', message }
}
