import { Buffer } from 'node:buffer'
import { STATUS_CODES } from 'node:http'
import type { Rejection } from '../../shared/tunnel-decisions.ts'
import { type Fields, valueOf } from './head/fields.ts'

/** Response of the edge itself. */
export interface EdgeResponse {
  readonly status: number
  readonly reason: string
  /** Header fields, names in lower case, without Content-Length, Date and Connection. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a response depends on beside the rejection. */
export interface ResponseContext {
  readonly id: string
  readonly head: Fields | undefined
  /** Target of the redirect of `httpsOnly`. */
  readonly location: string
  /** Response to an ACME challenge. */
  readonly challenge: string | undefined
}

/** Seconds of Retry-After, by reason. */
const RETRY_AFTER: Readonly<Record<string, string>> = { tunnel_offline: '5', overloaded: '1', edge_stopping: '1' }

const TITLES: Readonly<Record<string, string>> = {
  tunnel_offline: 'This tunnel is offline',
  unknown_host: 'There is no such tunnel',
  ip_denied: 'You may not visit this tunnel',
}

/**
 * Returns the response to a rejected request (docs/edge.md, "Errors of the edge"): with `Mooring-Error`, as HTML or JSON by the Accept
 * field.
 */
export function responseFor(rejection: Rejection, context: ResponseContext): EdgeResponse {
  if (rejection.reason === 'acme_challenge') {
    return {
      status: 200,
      reason: rejection.reason,
      headers: { 'content-type': 'application/octet-stream' },
      body: context.challenge ?? '',
    }
  }
  if (rejection.reason === 'cors_preflight')
    return { status: 204, reason: rejection.reason, headers: preflight(context), body: '' }
  const retry = RETRY_AFTER[rejection.reason]
  const more: Record<string, string> = retry === undefined ? {} : { 'retry-after': retry }
  if (rejection.status === 301) more.location = context.location
  return explained(rejection, context, more)
}

function explained(
  { status, reason, detail }: Rejection,
  { head, id }: ResponseContext,
  more: Record<string, string>,
): EdgeResponse {
  const html = head !== undefined && prefersHtml(valueOf(head, 'accept') ?? '')
  const headers = {
    'content-type': html ? 'text/html; charset=utf-8' : 'application/json',
    'cache-control': 'no-store',
    'mooring-error': reason,
    'x-request-id': id,
    ...more,
  }
  const body = html
    ? page(status, TITLES[reason] ?? STATUS_CODES[status] ?? reason, detail)
    : JSON.stringify({ msg: detail, error: { code: reason, requestId: id } })
  return { status, reason, headers, body }
}

/** Maximum number of media ranges that are read; browsers send about ten. */
const MAX_RANGES = 64

interface MediaRange {
  readonly name: string
  readonly weight: number
}

/** Preference for a media type, by the most specific range that matches it. */
interface Preference {
  readonly weight: number
  /** Width of that range: 0 the type itself, 1 its group, 2 every type. */
  readonly width: number
  /** Index of that range. */
  readonly position: number
}

/**
 * Whether an Accept field prefers HTML to JSON: by weight, then by the more specific range, then by order (RFC 9110, section 12.5.1). A
 * client that accepts both alike by one range, or neither, gets JSON.
 */
export function prefersHtml(accept: string): boolean {
  const ranges = accept.toLowerCase().split(',', MAX_RANGES).map(mediaRange)
  const html = preferenceFor(['text/html', 'text/*', '*/*'], ranges)
  const json = preferenceFor(['application/json', 'application/*', '*/*'], ranges)
  if (html.weight === 0 || html.weight !== json.weight) return html.weight > json.weight
  return html.width === json.width ? html.position < json.position : html.width < json.width
}

function mediaRange(text: string): MediaRange {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  return { name, weight: weight === undefined ? 1 : Math.max(0, Number(weight.slice('q='.length)) || 0) }
}

/** Returns the preference for a type; `names` are the ranges that match it, the narrowest first. */
function preferenceFor(names: readonly string[], ranges: readonly MediaRange[]): Preference {
  const width = names.findIndex((name) => ranges.some((range) => range.name === name))
  const position = ranges.findIndex(({ name }) => name === names[width])
  return { weight: ranges[position]?.weight ?? 0, width, position }
}

/** Returns the HTML page of an error. It contains only text of the edge, never text that a visitor sent. */
function page(status: number, title: string, detail: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} ${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32em;padding:0 1em;color:#222}h1{font-size:1.5em}p{color:#555}</style>
<h1>${title}</h1><p>${status}: ${detail}.</p></html>
`
}

/**
 * Returns the headers of a CORS preflight response (Fetch standard, "CORS protocol"): every request is allowed, without credentials.
 */
function preflight({ head, id }: ResponseContext): Record<string, string> {
  const vary = 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'
  const headers: Record<string, string> = { vary, 'x-request-id': id }
  const copy = (from: string, to: string) => {
    const value = head && valueOf(head, from)
    if (value !== undefined && value !== '') headers[to] = value
  }
  copy('origin', 'access-control-allow-origin')
  copy('access-control-request-method', 'access-control-allow-methods')
  copy('access-control-request-headers', 'access-control-allow-headers')
  return { ...headers, 'access-control-max-age': '600' }
}

let date = ''
let dateAt = 0

/** Returns the Date field for now, formatted once a second. */
export function httpDate(now: number): string {
  if (now - dateAt >= 1000 || now < dateAt) {
    dateAt = now
    date = new Date(now).toUTCString()
  }
  return date
}

/** Encodes the response as an HTTP/1.1 message. Values copied from the visitor's fields keep their bytes. */
export function responseBytes(answer: EdgeResponse, method: string, now: number, close: boolean): Buffer {
  let out = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nDate: ${httpDate(now)}\r\n`
  for (const [name, value] of Object.entries(answer.headers)) out += `${titleCase(name)}: ${value}\r\n`
  if (answer.status !== 204) out += `Content-Length: ${Buffer.byteLength(answer.body)}\r\n`
  if (close) out += 'Connection: close\r\n'
  return Buffer.concat([Buffer.from(`${out}\r\n`, 'latin1'), Buffer.from(method === 'HEAD' ? '' : answer.body)])
}

const titleCase = (name: string): string => name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())

/** Rejection of a malformed request. */
export const bad = (detail: string): Rejection => ({ status: 400, reason: 'bad_request', detail })

export const BAD_BODY = bad('the body of the request is not valid')
export const BAD_HOST = bad('there must be one valid Host')
export const BAD_LINE = bad('a line of the head does not end with CRLF')
export const HEAD_TOO_LARGE: Rejection = { status: 431, reason: 'head_too_large', detail: 'the head of the request is too large' }
/** Host that is longer than any valid Host. */
const ENDLESS_HOST = /\r\nhost:[^\r\n]{512}/i

/**
 * Returns the rejection of a head that exceeds {@link MAX_HEAD}; `text` is its beginning, latin1. An overlong Host is an invalid Host
 * (RFC 9112, section 3.2).
 */
export const tooLarge = (text: string): Rejection => (ENDLESS_HOST.test(text) ? BAD_HOST : HEAD_TOO_LARGE)
export const BAD_EXPECTATION: Rejection = { status: 417, reason: 'bad_expectation', detail: 'only 100-continue can be expected' }
export const UNKNOWN_CODING: Rejection = {
  status: 501,
  reason: 'unknown_transfer_coding',
  detail: 'chunked is the only transfer coding that the edge knows',
}
export const STOPPING: Rejection = {
  status: 503,
  reason: 'edge_stopping',
  detail: 'this edge is stopping; send the request again',
}
export const TOO_SLOW: Rejection = { status: 408, reason: 'too_slow', detail: 'the request did not come in time' }
