import type { SshLimits } from './limits.ts'
import type { Output } from '../channels/output.ts'
import type { Wire } from './wire/wire.ts'

interface Deps {
  readonly wire: Wire
  readonly output: Output
  readonly limits: Pick<SshLimits, 'rekeyBytes' | 'rekeyMs' | 'keepaliveMs' | 'keepaliveMisses' | 'probeMs'>
  readonly now: number
}

/** Maximum duration of a key exchange, in milliseconds. */
const KEY_EXCHANGE_MS = 30_000

/** `silent`: no answers to keepalives; `replaced`: no answer to a probe; `stuck`: a key exchange that does not end. */
export type LineState = 'fine' | 'silent' | 'replaced' | 'stuck'

/** Checks one connection: whether its client answers, its round-trip time, and the age of its keys. Times are monotonic. */
export class LineWatch {
  readonly #wire: Wire
  readonly #output: Output
  readonly #limits: Deps['limits']
  #heardAt: number
  #misses = 0
  #probedAt: number | undefined
  #received = 0
  #bytesAtKeys = 0
  #keysAt: number
  #exchangeAt: number | undefined
  #pingAt: number | undefined
  #roundTrip: ((ms: number) => void) | undefined
  #shortestMs = Infinity

  constructor({ wire, output, limits, now }: Deps) {
    this.#wire = wire
    this.#output = output
    this.#limits = limits
    this.#heardAt = now
    this.#keysAt = now
  }

  /** Records received bytes. Returns true when they answer a probe. */
  heard(bytes: number, now: number): boolean {
    this.#heardAt = now
    this.#misses = 0
    this.#received += bytes
    const answered = this.#probedAt !== undefined
    this.#probedAt = undefined
    return answered
  }

  probe(now: number): void {
    this.#probedAt ??= now
    this.#ping(now)
  }

  /** Measures the round-trip time now and with each keepalive. The shortest one counts, because a full line answers late. */
  measure(now: number, onMeasured: (ms: number) => void): void {
    this.#roundTrip = onMeasured
    this.#ping(now)
  }

  pong(now: number): void {
    if (this.#pingAt === undefined) return
    this.#shortestMs = Math.min(this.#shortestMs, now - this.#pingAt)
    this.#pingAt = undefined
    this.#roundTrip?.(this.#shortestMs)
  }

  rekeyed(now: number): void {
    this.#keysAt = now
    this.#bytesAtKeys = this.#received + this.#output.total
    this.#exchangeAt = undefined
  }

  /** `stalledMs`: time in which this process did not run, in milliseconds; the client may have answered meanwhile. */
  tick(now: number, stalledMs: number): LineState {
    this.#heardAt += stalledMs
    if (this.#probedAt !== undefined) this.#probedAt += stalledMs
    if (this.#exchangeAt !== undefined) this.#exchangeAt += stalledMs
    if (this.#probedAt !== undefined && now - this.#probedAt > this.#limits.probeMs) return 'replaced'
    if (now - this.#heardAt > this.#limits.keepaliveMs * (this.#misses + 1)) {
      if (this.#misses >= this.#limits.keepaliveMisses) return 'silent'
      this.#misses += 1
      this.#ping(now)
    }
    return this.#tickKeys(now)
  }

  #tickKeys(now: number): LineState {
    if (this.#wire.exchanging) {
      this.#exchangeAt ??= now
      return now - this.#exchangeAt > KEY_EXCHANGE_MS ? 'stuck' : 'fine'
    }
    const bytes = this.#received + this.#output.total - this.#bytesAtKeys
    if (bytes >= this.#limits.rekeyBytes || now - this.#keysAt >= this.#limits.rekeyMs) this.#wire.rekey()
    return 'fine'
  }

  #ping(now: number): void {
    this.#pingAt ??= now
    this.#wire.ping()
  }
}
