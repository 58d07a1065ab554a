import type { Modifications } from './forward-fields.ts'
import { Buffer } from 'node:buffer'
import { METHOD_MAX, type Rejection } from '../../../shared/tunnel-decisions.ts'
import { type Fields, isToken, MAX_FIELDS, readFields, STRIDE, targetEnd, tokenEnd } from './fields.ts'
import { type Framing, readFraming } from './framing.ts'
import { HOST, REQUEST_NAMES } from './names.ts'
import { bad, BAD_EXPECTATION, BAD_HOST, HEAD_TOO_LARGE } from '../errors.ts'

/** Visitor of a request, as far as the edge trusts the sources of these facts. */
export interface Visit {
  readonly id: string
  readonly scheme: 'http' | 'https'
  /** Address of the connection's other end. */
  readonly peer: string
  /** Whether the peer is a balancer whose X-Forwarded fields are trusted. */
  readonly trusted: boolean
  readonly port: number
}

/** Forwarded head, latin1, except for its request id: the text before the id and after it. */
export interface ForwardedRequest {
  readonly before: string
  readonly after: string
  /** The whole head with some id, once it was forwarded twice: copying bytes costs less than writing text. */
  bytes: Buffer | undefined
  /** Inputs of the text beside the head. */
  readonly modifications: Modifications
  readonly visit: Visit
}

/** Head of a request that has one meaning only. */
export interface RequestHead extends Fields {
  readonly method: string
  /** Target in origin form, or `*`. */
  readonly target: string
  /** Whether the request line can be forwarded unchanged. */
  readonly lineKept: boolean
  /** Offset of the fields in the text. */
  readonly fieldsAt: number
  readonly minor: 0 | 1
  /** Authority that the request is for, as the visitor wrote it. */
  readonly host: string
  /** Host name in lower case, without the port and a final dot. */
  readonly hostname: string
  /** The target without its query. */
  readonly path: string
  readonly framing: Framing
  /** Whether the visitor keeps the connection open for more requests. */
  readonly keepAlive: boolean
  /** Protocols that the request asks to upgrade to. */
  readonly upgrade: string | undefined
  /** Head that was last forwarded for it; the next time it may be the same. */
  forwarded: ForwardedRequest | undefined
}

const HOST_VALUE = /^([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?$/
const MAX_PORT = 65_535
const SLASH = 0x2f
/** Absolute form of a target (RFC 9112, section 3.2.2): scheme, authority, rest. */
export const ABSOLUTE = /^(https?):\/\/([^/?]*)(.*)$/i
/** Upgrades after which the edge could not see later requests. */
const HIDING = /(^|[\s,])(h2c?|http|tls)\b/i

/** Whether reading a head resulted in a rejection. */
export const isRejection = (value: object): value is Rejection => 'reason' in value

/**
 * Reads the head of a request strictly (RFC 9112): text that two readers may understand differently is rejected. The text is latin1,
 * from its first byte to the CRLF of its last field, without the empty line; `bytes` is the same.
 */
export function readRequestHead(text: string, bytes: Uint8Array = Buffer.from(text, 'latin1')): RequestHead | Rejection {
  const methodEnd = tokenEnd(bytes, 0)
  const end = targetEnd(bytes, methodEnd + 1)
  const minor = versionAt(text, end)
  if (methodEnd > METHOD_MAX) return bad(`the method is longer than ${METHOD_MAX} characters`)
  if (methodEnd === 0 || bytes[methodEnd] !== 0x20 || end === methodEnd + 1 || minor === undefined)
    return bad('the request line is not valid')
  const fieldsAt = end + 11
  const at = readFields(bytes, fieldsAt, REQUEST_NAMES)
  if (typeof at === 'string') return bad(at)
  if (at.length > MAX_FIELDS * STRIDE) return HEAD_TOO_LARGE
  const framing = readFraming(text, at)
  if (isRejection(framing)) return framing
  return settle({
    text,
    at,
    fieldsAt,
    minor,
    framing,
    method: text.slice(0, methodEnd),
    rawTarget: text.slice(methodEnd + 1, end),
  })
}

function versionAt(text: string, at: number): 0 | 1 | undefined {
  if (text.startsWith(' HTTP/1.1\r\n', at)) return 1
  return text.startsWith(' HTTP/1.0\r\n', at) ? 0 : undefined
}

interface Draft extends Fields {
  readonly fieldsAt: number
  readonly minor: 0 | 1
  readonly framing: Framing
  readonly method: string
  readonly rawTarget: string
}

function settle(draft: Draft): RequestHead | Rejection {
  const { framing, minor, rawTarget } = draft
  const absolute = rawTarget.charCodeAt(0) === SLASH ? null : ABSOLUTE.exec(rawTarget)
  return absolute && isOneHost(framing.host, minor) ? settleAbsolute(draft, absolute) : settleOrigin(draft)
}

function settleOrigin(draft: Draft): RequestHead | Rejection {
  const { text, at, fieldsAt, minor, framing, method, rawTarget } = draft
  const { host, expect } = framing
  if (host === undefined || !isHost(host)) return BAD_HOST
  if (!isTarget(method, rawTarget)) return bad('the request target is not valid')
  if (framing.chunked && minor === 0) return bad('HTTP/1.0 has no Transfer-Encoding')
  if (expect !== undefined && expect !== '100-continue') return BAD_EXPECTATION
  const keepAlive = keepsAlive(framing, minor)
  const upgrade = minor === 1 ? upgradeOf(framing) : undefined
  const lineKept = minor === 1
  const hostname = hostOf(host)
  const target = rawTarget
  const path = pathOf(rawTarget)
  const forwarded = undefined
  return { text, at, fieldsAt, minor, framing, method, target, path, lineKept, host, hostname, keepAlive, upgrade, forwarded }
}

function isHost(value: string): boolean {
  const [whole, , port = '1'] = HOST_VALUE.exec(value) ?? []
  return whole !== undefined && Number(port) > 0 && Number(port) <= MAX_PORT
}

/** Host that needs no normalization, as most do. */
const BARE_HOST = /^[a-z0-9.-]*[a-z0-9-]$/

/** Returns the host name of a Host value: in lower case, without the port and without the final dot of a fully qualified name. */
export function hostOf(value: string): string {
  if (BARE_HOST.test(value)) return value
  const colon = value.endsWith(']') ? -1 : value.lastIndexOf(':')
  return bareName(colon < 0 ? value : value.slice(0, colon))
}

/** Returns a host name in lower case, without the final dot of a fully qualified name (RFC 1034, section 3.1). */
export const bareName = (name: string): string => (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase()

/** Returns a target without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

/**
 * Whether a target that is not in absolute form is valid (RFC 9112, section 3.2): origin form, or `*` with OPTIONS. CONNECT is for
 * proxies.
 */
function isTarget(method: string, rawTarget: string): boolean {
  return method !== 'CONNECT' && (rawTarget.charCodeAt(0) === SLASH || (rawTarget === '*' && method === 'OPTIONS'))
}

/** Whether a request in absolute form has one valid Host field; HTTP/1.0 may have none (RFC 9112, section 3.2). */
const isOneHost = (host: string | undefined, minor: 0 | 1): boolean => (host === undefined ? minor === 0 : isHost(host))

/** Reads an absolute form as the same request in origin form: its authority replaces the Host field (RFC 9112, section 3.2.2). */
function settleAbsolute(draft: Draft, [, , authority = '', rest = '']: RegExpExecArray): RequestHead | Rejection {
  const { method, minor } = draft
  const target = rest.startsWith('/') ? rest : rootOf(method, rest)
  return readRequestHead(`${method} ${target} HTTP/1.${minor}\r\nHost: ${authority}\r\n${linesWithoutHost(draft)}`)
}

/**
 * Returns the target of an absolute form without a path: OPTIONS without a query is about the whole server (RFC 9112, section 3.2.4).
 */
const rootOf = (method: string, query: string): string => (method === 'OPTIONS' && query === '' ? '*' : `/${query}`)

function linesWithoutHost({ text, at }: Fields): string {
  let lines = ''
  for (let field = 0; field < at.length; field += STRIDE) {
    if (at[field + 4] !== HOST) lines += text.slice(at[field], at[field + STRIDE] ?? text.length)
  }
  return lines
}

export function hasBody({ framing }: Pick<RequestHead, 'framing'>): boolean {
  return framing.chunked || (framing.length ?? 0) > 0
}

/** Whether the connection stays open after the message (RFC 9112, section 9.3). */
export function keepsAlive({ connection }: Framing, minor: 0 | 1): boolean {
  if (connection.length === 0) return minor === 1
  return !connection.includes('close') && (minor === 1 || connection.includes('keep-alive'))
}

function upgradeOf(framing: Framing): string | undefined {
  const { connection, upgrade } = framing
  if (upgrade === undefined || !connection.includes('upgrade')) return undefined
  return hasBody({ framing }) || HIDING.test(upgrade) || !upgrade.split(',').every(isProtocol) ? undefined : upgrade
}

/** Whether the text is the name of a protocol, with or without a version (RFC 9110, section 7.8). */
function isProtocol(text: string): boolean {
  const parts = text.trim().split('/')
  return parts.length <= 2 && parts.every(isToken)
}
