import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Backoff, backoffMs } from '../../../shared/timers.ts'
import { MooringError, codeOf } from '../../../shared/errors.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { AdminCredentials, ServerState } from '../runtime.ts'
import { OTHER_SERIES } from '../series.ts'
import type { Ports } from './address.ts'
import type { LoginAttempt } from './programs/program.ts'

const PROBE_MS = 25
/** Polling interval of a slow start: recovery after a crash can take minutes. */
const SLOW_PROBE_MS = 250
const SLOW_AFTER_MS = 5000
/** Running time after which the count of failures starts anew. */
const STEADY_MS = 60_000
/** Wait before a failed server is started again. */
export const RESTART_BACKOFF: Backoff = { baseMs: 250, maxMs: 30_000 }

/** Server that runs; it may not accept logins yet. */
export interface Supervised extends Ports {
  /** Resolves when the server ends. Never rejects. */
  readonly exited: Promise<unknown>
}

/** Check of a running server whose engine may hang instead of ending. */
export interface HangCheck {
  readonly everyMs: number
  /** Number of consecutive failed logins after which the server is stopped. */
  readonly failures: number
  /** Stops the server, by force if necessary. */
  readonly stop: () => Promise<unknown>
}

/** Interval and tolerance of {@link HangCheck}: a server is stopped after 30 s without a login. */
export const HANG_CHECK = { everyMs: 5_000, failures: 6 }

export interface SupervisorDeps {
  /** Host for callers. */
  readonly host: string
  readonly admin: () => Promise<Omit<AdminTarget, 'port' | 'user' | 'password'>>
  readonly bringUp: (credentials: AdminCredentials, signal: AbortSignal) => Promise<Supervised>
  readonly logIn: (target: AdminTarget) => Promise<LoginAttempt>
  readonly lastOutput: () => Promise<string>
  /** Absent for an engine that ends when it fails. */
  readonly hangCheck?: HangCheck | undefined
  readonly changed: () => void
  readonly logger: Logger
}

/**
 * Keeps one server running.
 *
 *     absent ─ensure─▶ starting ─login accepted─▶ running
 *                       ▲    │                      │
 *        ensure, once   │    └─ error, exit ──┐     │ exit, hang
 *        back-off ended │                     ▼     ▼
 *                       └──────────────────── failed
 *
 * A running server that needs other settings goes back to `starting`: `bringUp` then restarts it. `restart` stops it and goes back to `absent`.
 *
 * `release` stops the supervision and leaves the process running.
 */
export class Supervisor {
  readonly #deps: SupervisorDeps
  readonly #released = new AbortController()
  #state: ServerState = { phase: 'absent' }
  #bringing: Promise<unknown> = Promise.resolve()
  #serving: Supervised | undefined
  #runningSince: number | undefined
  #failures = 0
  #retryAt = 0
  #settings = ''

  constructor(deps: SupervisorDeps) {
    this.#deps = deps
  }

  /**
   * Returns the server's state; starts the server if it is absent, due for a restart, or running with other settings.
   * @param settings key of the settings that only a restart changes
   */
  ensure(credentials: AdminCredentials, settings = ''): ServerState {
    const { phase } = this.#state
    const isOutdated = phase === 'running' && settings !== this.#settings
    const due = phase === 'absent' || isOutdated || (phase === 'failed' && performance.now() >= this.#retryAt)
    if (due && !this.#released.signal.aborted) {
      // The end of an outdated process is no failure.
      this.#serving = undefined
      this.#settings = settings
      this.#state = { phase: 'starting' }
      void this.#start(credentials)
    }
    return this.#state
  }

  /** Sets what a server that is starting waits for. */
  announce(message: string): void {
    const isNew = this.#state.phase === 'starting' && this.#state.message !== message
    if (isNew) this.#set({ phase: 'starting', message })
  }

  /** Stops a running server by `stop`, after which `ensure` starts it again at once: this end is no failure. */
  async restart(stop: () => Promise<unknown>): Promise<void> {
    if (this.#state.phase !== 'running') return
    this.#serving = undefined
    this.#set({ phase: 'starting', message: 'it is restarted' })
    try {
      await stop()
    } finally {
      if (!this.#released.signal.aborted) this.#set({ phase: 'absent' })
    }
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

  async #untilItAnswers(serving: Supervised, credentials: AdminCredentials): Promise<void> {
    const begin = performance.now()
    const admin = targetOf(await this.#deps.admin(), serving)
    const { signal } = this.#released
    while (this.#isServing(serving)) {
      const answer = await this.#deps.logIn({ ...admin, ...credentials })
      if (!this.#isServing(serving)) return
      if (answer.login === 'refused') throw new MooringError('admin_refused', `it rejects the admin's login (${answer.code})`)
      if (answer.login === 'accepted') {
        this.#runningSince = performance.now()
        this.#set({ phase: 'running', host: this.#deps.host, port: serving.port, admin })
        void this.#stopWhenHung(serving, { ...admin, ...credentials }).catch(() => undefined)
        return
      }
      const waited = performance.now() - begin
      await delay(waited > SLOW_AFTER_MS ? SLOW_PROBE_MS : PROBE_MS, undefined, { signal })
    }
  }

  /** Stops the server once it accepts no logins any more; its exit then starts it again. Rejects when the supervision is released. */
  async #stopWhenHung(serving: Supervised, target: AdminTarget): Promise<void> {
    const { hangCheck, logIn, logger } = this.#deps
    if (!hangCheck) return
    for (let failures = 0; failures < hangCheck.failures;) {
      await delay(hangCheck.everyMs, undefined, { signal: this.#released.signal, ref: false })
      if (!this.#isServing(serving)) return
      failures = (await logIn(target)).login === 'accepted' ? 0 : failures + 1
    }
    logger.warn({ port: serving.port }, 'database server hangs: it is stopped')
    await hangCheck.stop()
  }

  #isServing(serving: Supervised): boolean {
    return this.#serving === serving && !this.#released.signal.aborted
  }

  async #exited(serving: Supervised): Promise<void> {
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

type Target = Omit<AdminTarget, 'user' | 'password'>

const targetOf = (admin: Omit<Target, 'port'>, { port, adminPort }: Supervised): Target => ({
  ...admin,
  port,
  ...(adminPort !== undefined && { adminAddress: { host: admin.host, port: adminPort } }),
})

const UNAVAILABLE = new Set<string | undefined>(['engine_not_installed', 'unsafe_directory', 'no_engine_user', OTHER_SERIES])

const DISK_FULL = 'the disk of its data is full: free space there, and it starts again by itself'

function explain(error: unknown): { reason: 'MotorUnavailable' | 'Crashed'; message: string } {
  const code = codeOf(error)
  const other = code === 'ENOSPC' ? DISK_FULL : `it could not be started (${code ?? 'unexpected error'})`
  const message = error instanceof MooringError ? error.message : other
  return { reason: UNAVAILABLE.has(code) ? 'MotorUnavailable' : 'Crashed', message }
}
