import { Buffer } from 'node:buffer'
import type { ForwardedRequest, Visit, RequestHead } from './request-head.ts'
import { madeGarbage, ownBytes } from '../../memory.ts'
import { valueOf, STRIDE } from './fields.ts'
import { hopByHopFields, keptLines, type Modifications, isKept, type ForwardingRules, isCookie } from './forward-fields.ts'
import type { After, ForwardedResponse, Reply, ResponseHead } from './response-head.ts'
import { httpDate } from '../errors.ts'
import { DATE, DROP, SET_COOKIE } from './names.ts'

/**
 * Returns the request for the backend (docs/edge.md, "Headers"): the original Host, without hop-by-hop fields, with framing and visitor
 * fields of the edge, and the part of the body that has arrived.
 */
export function forwardedRequest(
  head: RequestHead,
  visit: Visit,
  modifications: Modifications,
  first: Buffer | undefined,
): Buffer {
  const known = head.forwarded
  const isKnown = known?.modifications === modifications && isAlike(known.visit, visit)
  const forwarded = isKnown ? known : (head.forwarded = composeRequest(head, visit, modifications))
  const { before, after } = forwarded
  const bodyAt = before.length + visit.id.length + after.length
  const message = Buffer.allocUnsafe(bodyAt + (first?.length ?? 0))
  madeGarbage(message.length)
  if (isKnown) {
    message.set((forwarded.bytes ??= ownBytes(`${before}${visit.id}${after}`)))
    message.write(visit.id, before.length, 'latin1')
  } else message.write(`${before}${visit.id}${after}`, 0, 'latin1')
  if (first) message.set(first, bodyAt)
  return message
}

/** Whether two visits yield the same head but for ids of the same length. */
const isAlike = (one: Visit, other: Visit): boolean =>
  one.peer === other.peer &&
  one.scheme === other.scheme &&
  one.port === other.port &&
  one.trusted === other.trusted &&
  one.id.length === other.id.length

function composeRequest(head: RequestHead, visit: Visit, modifications: Modifications): ForwardedRequest {
  const { framing, method, target, fieldsAt, lineKept, upgrade } = head
  const rules = { hops: hopByHopFields(framing.connection), modifications, trusted: visit.trusted }
  const before = lineKept ? keptLines(head, 0, rules) : `${method} ${target} HTTP/1.1\r\n${keptLines(head, fieldsAt, rules)}`
  let after = '\r\n'
  if (framing.chunked) after += 'Transfer-Encoding: chunked\r\n'
  else if (framing.length !== undefined) after += `Content-Length: ${framing.length}\r\n`
  if (framing.expect !== undefined && head.minor === 1) after += 'Expect: 100-continue\r\n'
  if (upgrade !== undefined) after += `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`
  return {
    before: `${before}${visitorLines(head, visit)}X-Request-Id: `,
    after: `${after}${modifications.lines}\r\n`,
    bytes: undefined,
    modifications,
    visit,
  }
}

function visitorLines(head: RequestHead, { scheme, peer, port, trusted }: Visit): string {
  const before = trusted ? valueOf(head, 'x-forwarded-for') : undefined
  const chain = before === undefined ? peer : `${before}, ${peer}`
  const host = (trusted ? valueOf(head, 'x-forwarded-host') : undefined) ?? head.host
  const at = (trusted ? valueOf(head, 'x-forwarded-port') : undefined) ?? port
  return `X-Forwarded-For: ${chain}\r\nX-Forwarded-Proto: ${scheme}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Port: ${at}\r\n`
}

const AFTER: Readonly<Record<After, string>> = {
  keep: '',
  close: 'Connection: close\r\n',
  'keep-1.0': 'Connection: keep-alive\r\n',
  upgrade: 'Connection: Upgrade\r\n',
}

/**
 * Returns the response for an HTTP/1.x visitor: the head without hop-by-hop fields, with new framing and a Date where the backend sent
 * none (RFC 9110, section 6.6.1), and the first part of the body. `date`: milliseconds since the epoch. The buffer is read-only: the
 * next response may be the same buffer.
 */
export function responseMessage(
  reply: Reply,
  { after, chunked, date, first }: { after: After; chunked: boolean; date: () => number; first: Buffer | undefined },
): Buffer {
  const known = reply.head.forwarded
  const isKnown = known?.after === after && known.chunked === chunked && isSameReply(known.reply, reply)
  const forwarded = isKnown ? known : (reply.head.forwarded = composeResponse(reply, after, chunked))
  if (!forwarded.isWhole) return withBody(`${forwarded.text}Date: ${httpDate(date())}\r\n\r\n`, first)
  return withBody(isKnown ? (forwarded.bytes ??= ownBytes(forwarded.text)) : forwarded.text, first)
}

function withBody(head: Buffer | string, first: Buffer | undefined): Buffer {
  if (first === undefined && typeof head !== 'string') return head
  const bytes = Buffer.allocUnsafe(head.length + (first?.length ?? 0))
  madeGarbage(bytes.length)
  if (typeof head === 'string') bytes.write(head, 0, 'latin1')
  else bytes.set(head)
  if (first) bytes.set(first, head.length)
  return bytes
}

const isSameReply = (one: Reply, other: Reply): boolean =>
  one.kind === other.kind && one.host === other.host && one.modifications === other.modifications

function composeResponse(reply: Reply, after: After, chunked: boolean): ForwardedResponse {
  const { head, modifications } = reply
  const { text, fieldsAt, minor } = head
  const fields = hasField(head, SET_COOKIE) ? keptWithCookies(reply) : keptLines(head, fieldsAt, rulesOf(reply))
  let out = (minor === 1 ? text.slice(0, fieldsAt) : `HTTP/1.1${text.slice(8, fieldsAt)}`) + fields
  if (chunked) out += 'Transfer-Encoding: chunked\r\n'
  else out += lengthLine(reply)
  if (after === 'upgrade' && head.framing.upgrade !== undefined) out += `Upgrade: ${head.framing.upgrade}\r\n`
  out += `${AFTER[after]}${modifications.lines}${cookieLines(reply)}`
  const isWhole = !wantsDate(reply)
  return { text: isWhole ? `${out}\r\n` : out, isWhole, bytes: undefined, reply, after, chunked }
}

/** Cookies that the tunnel sets, scoped as those of its backend. */
const cookieLines = ({ modifications, host }: Reply): string =>
  modifications.cookies.map((value) => `Set-Cookie: ${scopedCookie(value, host)}\r\n`).join('')

/** Whether the edge adds Date: the response is final and has none, and the tunnel's settings do not remove Date. */
export function wantsDate({ head, modifications: { removed } }: Reply): boolean {
  return head.status >= 200 && !hasField(head, DATE) && removed?.kindOf(DATE_NAME, 0, DATE_NAME.length) !== DROP
}

const DATE_NAME = Buffer.from('date')

/**
 * Returns the Content-Length line (RFC 9110, section 8.6): none in 1xx and 204. In responses to HEAD and in 304 it describes a body
 * that is not sent.
 */
function lengthLine({ head, kind }: Reply): string {
  const { length, chunked } = head.framing
  if (head.status < 200 || head.status === 204 || chunked || kind === 'close') return ''
  return length === undefined ? '' : `Content-Length: ${length}\r\n`
}

const rulesOf = ({ head, modifications }: Reply): ForwardingRules => ({
  hops: hopByHopFields(head.framing.connection),
  modifications,
  trusted: false,
})

function hasField({ at }: ResponseHead, kind: number): boolean {
  for (let field = 4; field < at.length; field += STRIDE) if (at[field] === kind) return true
  return false
}

function keptWithCookies(reply: Reply): string {
  return keptFields(reply)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

/** Returns the fields that the tunnel sets, with cookies scoped as those of its backend. */
export function addedFields({ modifications, host }: Reply): (readonly [string, string])[] {
  return modifications.added.map(({ name, value }) => [name, isCookie(name) ? scopedCookie(value, host) : value] as const)
}

/** Returns the forwarded fields as pairs. */
export function keptFields(reply: Reply): [string, string][] {
  const { head, host } = reply
  const { text, at } = head
  const rules = rulesOf(reply)
  const fields: [string, string][] = []
  for (let field = 0; field < at.length; field += STRIDE) {
    if (!isKept(head, field, rules)) continue
    const value = text.slice(at[field + 2], at[field + 3])
    fields.push([text.slice(at[field], at[field + 1]), at[field + 4] === SET_COOKIE ? scopedCookie(value, host) : value])
  }
  return fields
}

const DOMAIN = /;[\t ]*domain[\t ]*(=[^;]*)?(?=;|$)/gi

/**
 * Returns a Set-Cookie value whose scope is the tunnel's own host at most. A wider `Domain` would let one tunnel set cookies of other
 * tunnels. `host` is in lower case.
 */
export function scopedCookie(value: string, host: string): string {
  return value.replace(DOMAIN, (attribute) => (isWithin(attribute.slice(attribute.indexOf('=') + 1), host) ? attribute : ''))
}

function isWithin(domain: string, host: string): boolean {
  const name = domain.trim().toLowerCase().replace(/^\./, '')
  return name === host || name.endsWith(`.${host}`)
}
