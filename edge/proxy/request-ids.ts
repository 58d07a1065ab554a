import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'

/** Number of ids per call for random bytes. */
const COUNT = 256
/** Random bytes of an id: eighteen hexadecimal digits, and two bits of the last byte for the variant. */
const RANDOM_BYTES = 10
const DIGITS = Buffer.from('0123456789abcdef')
const VARIANTS = Buffer.from('89ab')
const FORM = 'tttttttt-tttt-7rrr-vrrr-rrrrrrrrrrrr'
const VARIANT_AT = FORM.indexOf('v')
/** Positions of the random digits, in the order in which they are filled. */
const PLACES = Array.from(FORM.matchAll(/r/g), ({ index }) => index)

const random = Buffer.alloc(COUNT * RANDOM_BYTES)
let randomAt = random.length
/** Last id, latin1; its time and dashes are reused for the next one. */
const id = Buffer.alloc(FORM.length)
let idTime = -1

/**
 * Returns a request id: a UUIDv7 (RFC 9562, section 5.7) of now with random bits of the system. Node's own function joins twenty
 * strings for each id, which is a thirtieth of the cost of a request; this one makes a single string.
 */
export function requestId(): string {
  const now = Date.now()
  if (now !== idTime) putTime(now)
  if (randomAt >= random.length) {
    randomFillSync(random)
    randomAt = 0
  }
  for (let index = 0; index < PLACES.length; index++) {
    const byte = random[randomAt + (index >> 1)] ?? 0
    id[PLACES[index] ?? 0] = DIGITS[index % 2 === 0 ? byte >> 4 : byte & 0xf] ?? 0
  }
  id[VARIANT_AT] = VARIANTS[(random[randomAt + RANDOM_BYTES - 1] ?? 0) & 3] ?? 0
  randomAt += RANDOM_BYTES
  return id.toString('latin1')
}

function putTime(now: number): void {
  const time = now.toString(16).padStart(12, '0')
  id.write(`${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`, 'latin1')
  idTime = now
}
