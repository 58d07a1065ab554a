import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { isFieldValue, isToken, MAX_HEAD } from '../head/fields.ts'
import { hasBody, isRejection, readRequestHead, type RequestHead } from '../head/request-head.ts'
import { bad, tooLarge } from '../errors.ts'

/** Connection-specific fields, which an HTTP/2 message must not have (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Whether a field, its name in lower case, is connection-specific. `TE: trailers` is allowed. */
export const isOfConnection = (name: string, value: string): boolean =>
  CONNECTION_FIELDS.has(name) || (name === 'te' && value.toLowerCase() !== 'trailers')

/** Returns names and values in turn, with names in lower case and without fields that HTTP/2 forbids: Node throws at any of those. */
export function streamFields(fields: Iterable<readonly [string, string]>): string[] {
  const raw: string[] = []
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (!isOfConnection(lower, value) && lower !== 'http2-settings') raw.push(lower, value)
  }
  return raw
}

/** Converts the list for functions of Node that take an object. It has no prototype: a field may have any name. */
export function fieldObject(raw: readonly string[]): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (let index = 0; index + 1 < raw.length; index += 2) (fields[raw[index] ?? ''] ??= []).push(raw[index + 1] ?? '')
  return fields
}

/** Header block of a stream: names and values in turn. */
export interface StreamHead {
  readonly raw: readonly string[]
  /** Whether no body follows. */
  readonly endsHere: boolean
}

interface Draft {
  readonly pseudo: Map<string, string>
  host: string | undefined
  cookies: string
  hasLength: boolean
  lines: string
}

/**
 * Reads the header block of a request as the head of an equivalent HTTP/1.1 request, with the same strict parser. Text that only one of
 * the versions can express (line ends in values, connection-specific fields, a wrong length) is rejected.
 */
export function readStreamHead({ raw, endsHere }: StreamHead): RequestHead | Rejection {
  const draft = draftOf(raw)
  if (typeof draft === 'string') return bad(draft)
  const line = requestLine(draft)
  if (line === undefined) return bad('the pseudo-header fields are not valid')
  const text = line + fieldLines(draft, endsHere)
  if (text.length > MAX_HEAD) return tooLarge(text)
  const head = readRequestHead(text)
  if (isRejection(head)) return head
  return endsHere && hasBody(head) ? bad('Content-Length is not that of the body') : head
}

/** Collects the fields, or returns the error of the first invalid one. */
function draftOf(raw: readonly string[]): Draft | string {
  const draft: Draft = { pseudo: new Map(), host: undefined, cookies: '', hasLength: false, lines: '' }
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name = '', value = ''] = [raw[index], raw[index + 1]]
    const broken = RULES.find((rule) => rule.breaks(name, value))
    const wrong = broken?.message ?? (name.startsWith(':') ? takePseudo(draft, name, value) : takeField(draft, name, value))
    if (wrong !== undefined) return wrong
  }
  return draft
}

interface FieldRule {
  readonly message: string
  breaks(name: string, value: string): boolean
}

const RULES: readonly FieldRule[] = [
  {
    message: 'a field has a character that is not allowed',
    breaks: (_name, value) => !isFieldValue(value) || value !== value.trim(),
  },
  {
    message: 'a field has no valid name',
    breaks: (name) => !isToken(name.startsWith(':') ? name.slice(1) : name) || name !== name.toLowerCase(),
  },
  {
    message: 'a field is of the connection',
    breaks: isOfConnection,
  },
]

/** Takes a pseudo-header field. Each occurs once, before all other fields (RFC 9113, section 8.3). */
function takePseudo({ pseudo, lines, host }: Draft, name: string, value: string): string | undefined {
  if (pseudo.has(name) || lines !== '' || host !== undefined) return 'a pseudo-header field is there twice, or too late'
  pseudo.set(name, value)
  return undefined
}

function takeField(draft: Draft, name: string, value: string): string | undefined {
  if (name === 'host') {
    if (draft.host !== undefined) return 'there is more than one Host'
    draft.host = value
    return undefined
  }
  if (name === 'content-length') draft.hasLength = true
  if (name === 'cookie') draft.cookies += draft.cookies === '' ? value : `; ${value}`
  else draft.lines += `${name}: ${value}\r\n`
  return undefined
}

const sameHost = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
const PSEUDO = new Set([':method', ':scheme', ':path', ':authority'])

function requestLine({ pseudo, host }: Draft): string | undefined {
  const of = (name: string): string => pseudo.get(name) ?? ''
  const [method, path] = [of(':method'), of(':path')]
  const isComplete = [...pseudo.keys()].every((name) => PSEUDO.has(name)) && pseudo.has(':scheme')
  if (!isComplete || !isToken(method) || !/^[/*][^ \t]*$/.test(path)) return undefined
  // Without both, the parser rejects the empty Host.
  const named = pseudo.has(':authority') ? of(':authority') : (host ?? '')
  return host === undefined || sameHost(host, named) ? `${method} ${path} HTTP/1.1\r\nHost: ${named}\r\n` : undefined
}

/** Joins cookies into one field (RFC 9113, section 8.2.3). A body of unknown length is sent in chunks. */
function fieldLines({ lines, cookies, hasLength }: Draft, endsHere: boolean): string {
  const cookie = cookies === '' ? '' : `cookie: ${cookies}\r\n`
  return `${lines}${cookie}${endsHere || hasLength ? '' : 'transfer-encoding: chunked\r\n'}`
}
