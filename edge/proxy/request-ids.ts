import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'

/** Ids for which random bytes are got at once. */
const COUNT = 256
/** 74 bits are random: three digits, the variant's two bits, and fifteen digits. */
const RANDOM_BYTES = 10
const VARIANTS = '89ab'
const TAIL_LENGTH = 'rrr-vrrr-rrrrrrrrrrrr'.length

const random = Buffer.alloc(COUNT * RANDOM_BYTES)
/** The random parts of the next ids, one after the other, latin1: a text of them all would be kept by each that lives. */
let tails = Buffer.alloc(0)
let tailAt = 0
/** How ids of this millisecond begin. */
let last = { at: -1, head: '' }

/**
 * The id of a request: a UUIDv7 (RFC 9562, section 5.7) of this moment, its other bits from the system's random numbers. Node's own puts twenty texts together for
 * each, which is a thirtieth of all that a request costs; here that is done for many at once.
 */
export function requestId(): string {
  const now = Date.now()
  if (now !== last.at) last = { at: now, head: headOf(now) }
  if (tailAt >= tails.length) {
    tails = makeTails()
    tailAt = 0
  }
  tailAt += TAIL_LENGTH
  return last.head + tails.toString('latin1', tailAt - TAIL_LENGTH, tailAt)
}

function headOf(now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
}

function makeTails(): Buffer<ArrayBuffer> {
  const hex = randomFillSync(random).toString('hex')
  const parts = Array.from({ length: COUNT }, (_, index) => {
    const digits = hex.slice(index * 2 * RANDOM_BYTES, (index + 1) * 2 * RANDOM_BYTES)
    const variant = VARIANTS.charAt(parseInt(digits.charAt(18), 16) % VARIANTS.length)
    return `${digits.slice(0, 3)}-${variant}${digits.slice(3, 6)}-${digits.slice(6, 18)}`
  })
  return Buffer.from(parts.join(''), 'latin1')
}
