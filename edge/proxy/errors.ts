import { Buffer } from 'node:buffer'
import { STATUS_CODES } from 'node:http'
import type { Rejection } from '../../shared/tunnel-decisions.ts'
import { type Fields, valueOf } from './head/fields.ts'

/** An answer that the edge itself gives. */
export interface Answer {
  readonly status: number
  readonly reason: string
  /** Names in lower case. Without Content-Length, Date and Connection. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What an answer may depend on beside the decision. */
export interface ResponseContext {
  readonly id: string
  readonly head: Fields | undefined
  /** Where httpsOnly sends the visitor. */
  readonly location: string
  /** What the certificate authority is answered. */
  readonly challenge: string | undefined
}

/** Seconds after which a visitor may try again. */
const RETRY_AFTER: Readonly<Record<string, string>> = { tunnel_offline: '5', overloaded: '1', edge_stopping: '1' }

const TITLES: Readonly<Record<string, string>> = {
  tunnel_offline: 'This tunnel is offline',
  unknown_host: 'There is no such tunnel',
  ip_denied: 'You may not visit this tunnel',
}

/** The answer to a request that is stopped (surface, section 5): `Mooring-Error`, HTML or JSON by Accept. */
export function responseFor(rejection: Rejection, asked: ResponseContext): Answer {
  if (rejection.reason === 'acme_challenge') {
    return {
      status: 200,
      reason: rejection.reason,
      headers: { 'content-type': 'application/octet-stream' },
      body: asked.challenge ?? '',
    }
  }
  if (rejection.reason === 'cors_preflight') return { status: 204, reason: rejection.reason, headers: preflight(asked), body: '' }
  const retry = RETRY_AFTER[rejection.reason]
  const more: Record<string, string> = retry === undefined ? {} : { 'retry-after': retry }
  if (rejection.status === 301) more.location = asked.location
  return explained(rejection, asked, more)
}

function explained({ status, reason, detail }: Rejection, { head, id }: ResponseContext, more: Record<string, string>): Answer {
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

/** Browsers send some ten. */
const MAX_RANGES = 64

interface MediaRange {
  readonly name: string
  readonly weight: number
}

/** How a media type is wanted: by the most specific range that matches it. */
interface Preference {
  readonly weight: number
  /** How much more than the type that range matches: nothing, its kind, everything. */
  readonly width: number
  /** Which one it is. */
  readonly position: number
}

/**
 * Whether an Accept field wants HTML more than JSON: by weight, else by what it names more exactly, else by order (RFC 9110, section 12.5.1). Who takes
 * anything, or neither, is no browser.
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

/** `names`: of the ranges that match the type, the narrowest first. */
function preferenceFor(names: readonly string[], ranges: readonly MediaRange[]): Preference {
  const width = names.findIndex((name) => ranges.some((range) => range.name === name))
  const position = ranges.findIndex(({ name }) => name === names[width])
  return { weight: ranges[position]?.weight ?? 0, width, position }
}

/** Every text in it is one of ours: nothing that a visitor sent is shown. */
function page(status: number, title: string, detail: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} ${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32em;padding:0 1em;color:#222}h1{font-size:1.5em}p{color:#555}</style>
<h1>${title}</h1><p>${status}: ${detail}.</p></html>
`
}

/** Fetch, "CORS protocol": what is asked for is allowed, without credentials. */
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

/** The Date of now, made anew once a second. */
export function httpDate(now: number): string {
  if (now - dateAt >= 1000 || now < dateAt) {
    dateAt = now
    date = new Date(now).toUTCString()
  }
  return date
}

/** The answer as an HTTP/1.1 message: what it repeats of the visitor's fields has the bytes that came. */
export function answerBytes(answer: Answer, method: string, now: number, close: boolean): Buffer {
  let out = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nDate: ${httpDate(now)}\r\n`
  for (const [name, value] of Object.entries(answer.headers)) out += `${titleCase(name)}: ${value}\r\n`
  if (answer.status !== 204) out += `Content-Length: ${Buffer.byteLength(answer.body)}\r\n`
  if (close) out += 'Connection: close\r\n'
  return Buffer.concat([Buffer.from(`${out}\r\n`, 'latin1'), Buffer.from(method === 'HEAD' ? '' : answer.body)])
}

const titleCase = (name: string): string => name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
