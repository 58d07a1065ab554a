import type { ForwardedRequest, Visit } from './request-head.ts'
import { Buffer } from 'node:buffer'
import { madeGarbage } from '../../garbage-collection.ts'
import { ownBytes } from '../../buffers.ts'
import { valueOf } from './fields.ts'
import { hopByHopFields, keptLines } from './forward-fields.ts'
import type { Modifications } from './modifications.ts'
import type { RequestHead } from './request-head.ts'

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
  const forwarded = isKnown ? known : (head.forwarded = compose(head, visit, modifications))
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

function compose(head: RequestHead, visit: Visit, modifications: Modifications): ForwardedRequest {
  const { framing, method, target, fieldsAt, lineKept, upgrade } = head
  const rules = { hops: hopByHopFields(framing.connection), modifications, trusted: visit.trusted }
  const before = lineKept ? keptLines(head, 0, rules) : `${method} ${target} HTTP/1.1\r\n${keptLines(head, fieldsAt, rules)}`
  let after = '\r\n'
  if (framing.chunked) after += 'Transfer-Encoding: chunked\r\n'
  else if (framing.length !== undefined) after += `Content-Length: ${framing.length}\r\n`
  if (framing.expect !== undefined && head.minor === 1) after += 'Expect: 100-continue\r\n'
  if (upgrade !== undefined) after += `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`
  return {
    before: `${before}${visitor(head, visit)}X-Request-Id: `,
    after: `${after}${modifications.lines}\r\n`,
    bytes: undefined,
    modifications,
    visit,
  }
}

function visitor(head: RequestHead, { scheme, peer, port, trusted }: Visit): string {
  const before = trusted ? valueOf(head, 'x-forwarded-for') : undefined
  const chain = before === undefined ? peer : `${before}, ${peer}`
  const host = (trusted ? valueOf(head, 'x-forwarded-host') : undefined) ?? head.host
  const at = (trusted ? valueOf(head, 'x-forwarded-port') : undefined) ?? port
  return `X-Forwarded-For: ${chain}\r\nX-Forwarded-Proto: ${scheme}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Port: ${at}\r\n`
}
