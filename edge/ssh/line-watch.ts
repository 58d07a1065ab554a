import type { SshLimits } from './limits.ts'
import type { Output } from '../channels/output.ts'
import type { Wire } from './wire/wire.ts'

interface Deps {
  readonly wire: Wire
  readonly output: Output
  readonly limits: Pick<SshLimits, 'rekeyBytes' | 'rekeyMs' | 'keepaliveMisses' | 'probeMs'>
  readonly now: number
}

/** In milliseconds. */
interface Pace {
  readonly keepaliveMs: number
  readonly keyExchangeMs: number
  /** How long this process itself has not looked: the client may have answered meanwhile. */
  readonly stalledMs: number
}

/** `silent`: no answers; `replaced`: none to a probe; `stuck`: a key exchange that does not end. */
export type LineState = 'fine' | 'silent' | 'replaced' | 'stuck'

/** Watches one connection's line: whether its client is there, how far away it is, and when its keys are old. Times are monotonic. */
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

  /** Bytes came. True: a probe is answered by them. */
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

  /** Measures how long the way there and back takes, now and with each keepalive; the shortest counts: a full line answers late. */
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

  tick(now: number, { keepaliveMs, keyExchangeMs, stalledMs }: Pace): LineState {
    this.#heardAt += stalledMs
    if (this.#probedAt !== undefined) this.#probedAt += stalledMs
    if (this.#exchangeAt !== undefined) this.#exchangeAt += stalledMs
    if (this.#probedAt !== undefined && now - this.#probedAt > this.#limits.probeMs) return 'replaced'
    if (now - this.#heardAt > keepaliveMs * (this.#misses + 1)) {
      if (this.#misses >= this.#limits.keepaliveMisses) return 'silent'
      this.#misses += 1
      this.#ping(now)
    }
    return this.#tickKeys(now, keyExchangeMs)
  }

  #tickKeys(now: number, keyExchangeMs: number): LineState {
    if (this.#wire.exchanging) {
      this.#exchangeAt ??= now
      return now - this.#exchangeAt > keyExchangeMs ? 'stuck' : 'fine'
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
