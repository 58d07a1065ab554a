import { valueOf } from './fields.ts'
import { hopFields, keptLines } from './forward-fields.ts'
import type { Modifications } from './modifications.ts'
import type { RequestHead } from './request-head.ts'

/** Who asks, as far as the edge believes it. */
export interface Visit {
  readonly id: string
  readonly scheme: 'http' | 'https'
  /** Address of whoever is connected. */
  readonly peer: string
  /** Whether that is a balancer whose X-Forwarded-… fields are believed. */
  readonly trusted: boolean
  readonly port: number
}

/** The head that the backend is sent, latin1 (surface, section 5): Host as it is, hop-by-hop fields left out, framing and visitor said by the edge alone. */
export function forwardedRequest(head: RequestHead, visit: Visit, modifications: Modifications): string {
  const { framing, method, target, fieldsAt, lineKept, upgrade } = head
  const hops = hopFields(framing.connection)
  let out = lineKept
    ? keptLines(head, 0, hops, modifications)
    : `${method} ${target} HTTP/1.1\r\n${keptLines(head, fieldsAt, hops, modifications)}`
  out += visitor(head, visit)
  if (framing.chunked) out += 'Transfer-Encoding: chunked\r\n'
  else if (framing.length !== undefined) out += `Content-Length: ${framing.length}\r\n`
  if (framing.expect !== undefined && head.minor === 1) out += 'Expect: 100-continue\r\n'
  if (upgrade !== undefined) out += `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`
  return `${out}${modifications.lines}\r\n`
}

function visitor(head: RequestHead, { id, scheme, peer, port, trusted }: Visit): string {
  const before = trusted ? valueOf(head, 'x-forwarded-for') : undefined
  const chain = before === undefined ? peer : `${before}, ${peer}`
  const host = (trusted ? valueOf(head, 'x-forwarded-host') : undefined) ?? head.host
  const at = (trusted ? valueOf(head, 'x-forwarded-port') : undefined) ?? port
  return `X-Forwarded-For: ${chain}\r\nX-Forwarded-Proto: ${scheme}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Port: ${at}\r\nX-Request-Id: ${id}\r\n`
}
