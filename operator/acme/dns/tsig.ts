import { createHmac, timingSafeEqual } from 'node:crypto'
import { decode, type DecodedPacket } from 'dns-packet'
import { MooringError } from '../../../shared/errors.ts'

/** Algorithms of TSIG keys (RFC 8945, section 6), with the hash of each. */
const HASHES = { 'hmac-sha256': 'sha256', 'hmac-sha384': 'sha384', 'hmac-sha512': 'sha512' } as const
export type TsigAlgorithm = keyof typeof HASHES

/** Key that DNS messages are signed with. */
export interface TsigKey {
  readonly name: string
  readonly algorithm: TsigAlgorithm
  readonly secret: Buffer
}

/** Signed message and its MAC, which the MAC of the response includes. */
export interface SignedMessage {
  readonly bytes: Buffer
  readonly mac: Buffer
}

/** Error of TSIG in a response (RFC 8945, section 3), with its meaning for an administrator. */
const TSIG_ERRORS: Readonly<Record<number, string>> = {
  16: 'BADSIG: it has another secret for this key',
  17: 'BADKEY: it does not know this key, or has another algorithm for it',
  18: 'BADTIME: its clock and that of this machine differ by more than 5 minutes',
  22: 'BADTRUNC: it does not accept a MAC of this length',
}

const [TYPE_TSIG, CLASS_ANY] = [250, 255]
const FUDGE_S = 300
const HEADER = 12
/** Offset of the number of additional records in a header (RFC 1035, section 4.1.1). */
const ARCOUNT = 10

/** Encodes a name in lower case, uncompressed (RFC 4034, section 6.2). */
export function wireName(name: string): Buffer {
  const labels = name
    .toLowerCase()
    .split('.')
    .filter((label) => label !== '')
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)])),
    Buffer.from([0]),
  ])
}

/** Encodes unsigned 16-bit integers. */
export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  values.forEach((value, index) => bytes.writeUInt16BE(value, 2 * index))
  return bytes
}

/** Encodes a time as an unsigned 48-bit integer. */
function time(seconds: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(seconds, 0, 6)
  return bytes
}

const sized = (bytes: Buffer): Buffer => Buffer.concat([words(bytes.length), bytes])

interface Variables {
  readonly seconds: number
  readonly fudge: number
  readonly error: number
  readonly other: Buffer
}

/** Returns the MAC of a message without its TSIG record (RFC 8945, section 4.3.3). For a response, `before` is the MAC of the request. */
function macOf(key: TsigKey, message: Buffer, { seconds, fudge, error, other }: Variables, before?: Buffer): Buffer {
  const variables = [
    wireName(key.name),
    words(CLASS_ANY, 0, 0),
    wireName(key.algorithm),
    time(seconds),
    words(fudge, error),
    sized(other),
  ]
  const digested = [...(before ? [sized(before)] : []), message, ...variables]
  return createHmac(HASHES[key.algorithm], key.secret).update(Buffer.concat(digested)).digest()
}

/** Signs a message. It must not have additional records. */
export function signed(message: Buffer, key: TsigKey, now: Date): SignedMessage {
  const seconds = Math.floor(now.getTime() / 1_000)
  const mac = macOf(key, message, { seconds, fudge: FUDGE_S, error: 0, other: Buffer.alloc(0) })
  const id = message.subarray(0, 2)
  const data = Buffer.concat([wireName(key.algorithm), time(seconds), words(FUDGE_S), sized(mac), id, words(0, 0)])
  const record = Buffer.concat([wireName(key.name), words(TYPE_TSIG, CLASS_ANY, 0, 0), sized(data)])
  const bytes = Buffer.concat([message, record])
  bytes.writeUInt16BE(1, ARCOUNT)
  return { bytes, mac }
}

const invalid = (why: string): MooringError => new MooringError('dns_invalid_answer', why)

/**
 * Checks the response to a signed message.
 * @throws MooringError `dns_rejected` with the TSIG error of the response
 * @throws MooringError `dns_invalid_answer` when a response without an error is not signed with the key, or was signed at another time
 */
export function verify(response: Buffer, request: SignedMessage, key: TsigKey, now: Date): void {
  const tsig = tsigOf(parsed(response))
  if (tsig && tsig.error !== 0) {
    throw new MooringError('dns_rejected', TSIG_ERRORS[tsig.error] ?? `TSIG error ${tsig.error}`)
  }
  // An error may be unsigned. A forged error can only delay an update.
  if (rcodeName(response) !== 'NOERROR') return
  if (!tsig) throw invalid('its response is not signed')
  const unsigned = Buffer.from(response.subarray(0, lastRecord(response)))
  unsigned.writeUInt16BE(unsigned.readUInt16BE(ARCOUNT) - 1, ARCOUNT)
  unsigned.set(tsig.id, 0)
  const mac = macOf(key, unsigned, tsig, request.mac)
  const isSame = mac.length === tsig.mac.length && timingSafeEqual(mac, tsig.mac)
  if (!isSame) throw invalid('its response is signed with another key')
  if (Math.abs(now.getTime() / 1_000 - tsig.seconds) > FUDGE_S) throw invalid('its response is signed at another time')
}

/** Returns the TSIG record of a message, which is always the last record (RFC 8945, section 5.1). */
function tsigOf({ additionals = [] }: DecodedPacket): Tsig | undefined {
  const last = additionals.at(-1)
  return last?.type === 'TSIG' && Buffer.isBuffer(last.data) ? tsigIn(last.data) : undefined
}

/** Response codes (RFC 1035, section 4.1.1; RFC 2136, section 2.2). */
const RCODES = [
  'NOERROR',
  'FORMERR',
  'SERVFAIL',
  'NXDOMAIN',
  'NOTIMP',
  'REFUSED',
  'YXDOMAIN',
  'YXRRSET',
  'NXRRSET',
  'NOTAUTH',
  'NOTZONE',
]

/** Returns the name of a message's response code. */
export function rcodeName(message: Buffer): string {
  const code = message.readUInt8(3) & 0x0f
  return RCODES[code] ?? `code ${code}`
}

/** Decodes a message. @throws MooringError `dns_invalid_answer` */
export function parsed(message: Buffer): DecodedPacket {
  try {
    return decode(message)
  } catch (cause) {
    throw new MooringError('dns_invalid_answer', 'its response is no DNS message', { cause })
  }
}

interface Tsig extends Variables {
  readonly mac: Buffer
  /** Id of the original message. */
  readonly id: Buffer
}

/** Fields of a TSIG record (RFC 8945, section 4.2). */
function tsigIn(data: Buffer): Tsig | undefined {
  try {
    const at = afterName(data, 0)
    const size = data.readUInt16BE(at + 8)
    const end = at + 10 + size
    const other = end + 6
    return {
      seconds: data.readUIntBE(at, 6),
      fudge: data.readUInt16BE(at + 6),
      mac: data.subarray(at + 10, end),
      id: data.subarray(end, end + 2),
      error: data.readUInt16BE(end + 2),
      other: data.subarray(other, other + data.readUInt16BE(end + 4)),
    }
  } catch {
    return undefined
  }
}

function afterName(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    const length = bytes.readUInt8(at)
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    at += 1 + length
  }
}

/** Returns the offset of the last record of a message. dns-packet must have decoded it without an error before. */
function lastRecord(message: Buffer): number {
  const count = (index: number) => message.readUInt16BE(4 + 2 * index)
  let at = HEADER
  for (let index = 0; index < count(0); index += 1) at = afterName(message, at) + 4
  let begin = at
  for (let index = count(1) + count(2) + count(3); index > 0; index -= 1) {
    begin = at
    const fixed = afterName(message, at)
    at = fixed + 10 + message.readUInt16BE(fixed + 8)
  }
  return begin
}
