import { randomInt } from 'node:crypto'
import { encode } from 'dns-packet'
import { MooringError } from '../../../shared/errors.ts'
import { type DnsServer, exchange, serverName } from './exchange.ts'
import { rcodeName, signed, type TsigKey, verify, wireName, words } from './tsig.ts'

/** Addition or removal of one value of a TXT record. Other values of the name stay. */
export interface TxtChange {
  readonly do: 'add' | 'remove'
  /** Zone that has the record. */
  readonly zone: string
  readonly name: string
  readonly value: string
}

const [TYPE_TXT, CLASS_IN, CLASS_NONE] = [16, 1, 254]
/** Opcode UPDATE in the flags of a header (RFC 2136, section 2.2). */
const UPDATE = 5 << 11
/** Offset of the number of changes in a header. */
const CHANGES = 8
/** TTL of the record in seconds. It exists only during an order. */
const TTL = 60
const STRING_MAX = 255

/** Encodes an update (RFC 2136, section 2.5). The change is encoded here, because dns-packet lacks the class NONE, which removes a record. */
function updateOf(change: TxtChange): Buffer {
  const head = encode({ type: 'query', id: randomInt(0x1_0000), flags: UPDATE, questions: [{ name: change.zone, type: 'SOA' }] })
  const text = Buffer.from(change.value)
  const strings: Buffer[] = []
  for (let at = 0; at < text.length; at += STRING_MAX) {
    const string = text.subarray(at, at + STRING_MAX)
    strings.push(Buffer.from([string.length]), string)
  }
  const data = Buffer.concat(strings)
  const [klass, ttl] = change.do === 'add' ? [CLASS_IN, TTL] : [CLASS_NONE, 0]
  const message = Buffer.concat([head, wireName(change.name), words(TYPE_TXT, klass, 0, ttl, data.length), data])
  message.writeUInt16BE(1, CHANGES)
  return message
}

/** Meaning of a response code (RFC 2136, section 2.2) for an administrator. */
const MEANINGS: Readonly<Record<string, string>> = {
  NOTAUTH: 'it is not the primary server of this zone',
  NOTZONE: 'the name is not in this zone',
  REFUSED: 'it does not allow this key to change this record',
  NOTIMP: 'it has no dynamic updates',
  SERVFAIL: 'its log has the reason',
}

/**
 * Changes a TXT record by a signed dynamic update (RFC 2136). A repeated change has no further effect.
 * @throws MooringError `dns_unreachable`, `dns_rejected`, `dns_invalid_answer`; the message names the record, the server and its answer
 */
export async function updateTxt(server: DnsServer, change: TxtChange, key: TsigKey, clock: () => Date): Promise<void> {
  const about = `the TXT record ${change.name} in the zone ${change.zone} cannot be ${change.do === 'add' ? 'written' : 'removed'}`
  const request = signed(updateOf(change), key, clock())
  let response: Buffer
  try {
    response = await exchange(server, request.bytes)
  } catch (cause) {
    throw new MooringError('dns_unreachable', `${about}: ${messageOf(cause)}`, { cause })
  }
  const answered = `${about}: the DNS server ${serverName(server)} has answered with`
  try {
    verify(response, request, key, clock())
  } catch (cause) {
    const code = cause instanceof MooringError ? cause.code : 'dns_invalid_answer'
    const what = code === 'dns_rejected' ? messageOf(cause) : `an invalid message: ${messageOf(cause)}`
    throw new MooringError(code, `${answered} ${what} (key ${key.name})`, { cause })
  }
  const name = rcodeName(response)
  if (name === 'NOERROR') return
  const meaning = MEANINGS[name]
  throw new MooringError('dns_rejected', `${answered} ${name}${meaning === undefined ? '' : `: ${meaning}`} (key ${key.name})`)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
