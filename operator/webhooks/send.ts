import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { codeOf, MooringError } from '../../shared/errors.ts'
import { ADDRESS_RULE, type AddressGuard, portOf } from '../../shared/outside-addresses.ts'
import { isWebhookUrl } from '../../crds/formats/webhook-url.ts'
import type { Resolve } from './resolve.ts'
import type { Response } from './plan.ts'

/** Maximum time from the resolution of the name to the end of the response, in milliseconds. */
const TIMEOUT_MS = 10_000
/** Number of bytes of a response body that are kept; the rest is not read. */
const KEPT_BYTES = 1_024
const HEADER_BYTES = 16_384

export interface SendDeps {
  readonly guard: AddressGuard
  readonly resolve: Resolve
  /** Default: 10 s. */
  readonly timeoutMs?: number
}

export interface Message {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Sent extends Response {
  readonly durationMs: number
  /** First 1,024 bytes of the response body; null without a response. */
  readonly body: string | null
}

/** Posts a message and returns the response; never throws. */
export type Send = (message: Message, signal: AbortSignal) => Promise<Sent>

/**
 * Creates the client for receivers, whose URLs tenants choose. It connects only to addresses that the guard allows, exactly as checked. It follows no
 * redirects, uses no proxy, and bounds the time and size of the response.
 */
export function createSend({ guard, resolve, timeoutMs = TIMEOUT_MS }: SendDeps): Send {
  return async function send(message, signal) {
    const began = performance.now()
    const deadline = AbortSignal.timeout(timeoutMs)
    const over = AbortSignal.any([signal, deadline])
    const result = await exchange(message, over).catch((error: unknown) => ({
      status: null,
      body: null,
      error: deadline.aborted ? `no response within ${timeoutMs / 1_000} s` : errorText(error),
    }))
    return { ...result, durationMs: Math.round((performance.now() - began) * 10) / 10 }
  }

  async function exchange({ url: text, headers, body }: Message, signal: AbortSignal): Promise<Omit<Sent, 'durationMs'>> {
    const url = URL.parse(text)
    if (!url || !isWebhookUrl(text)) throw new MooringError('refused', 'the URL is not allowed')
    const addresses = await checkedAddresses(url, signal)
    signal.throwIfAborted()
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      // A connection of its own, because a reused one might lead to an address of an earlier check.
      agent: false,
      lookup: answering(addresses),
      maxHeaderSize: HEADER_BYTES,
      signal,
    })
    const response = await responseOf(request, body)
    try {
      const retryAfter = response.headers['retry-after']
      return { status: response.statusCode ?? null, retryAfter, body: await beginningOf(response, signal), error: null }
    } finally {
      request.destroy()
    }
  }

  /** Returns the addresses of a URL's host, all of them allowed. @throws MooringError `refused`, `unresolved` */
  async function checkedAddresses(url: URL, signal: AbortSignal): Promise<readonly string[]> {
    if (!guard.allowsUrl(url)) throw refused()
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const port = portOf(url)
    const addresses = isIP(hostname) === 0 ? await resolve(hostname, signal) : [hostname]
    // One address that is not allowed is enough to reject the name, since the connection might go there.
    if (addresses.every((address) => guard.allows(address, port))) return addresses
    throw refused()
  }
}

const refused = () => new MooringError('refused', `the host ${ADDRESS_RULE}`)

/** Lookup function that returns the checked addresses, whatever DNS answers by now. */
function answering(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, options, callback) => {
    const [first] = all
    if (options.all === true || !first) callback(null, all)
    else callback(null, first.address, first.family)
  }
}

function responseOf(request: ClientRequest, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve)
    // This listener also serves after the response: without it an error would end the process.
    request.on('error', reject)
    // The receiver has switched to another protocol (status 101).
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve(response)
    })
    request.end(body)
  })
}

/**
 * Returns the beginning of a body as text. The status has arrived already, so a lost connection or the deadline only cuts the body.
 */
async function beginningOf(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= KEPT_BYTES) break
    }
  } catch (error) {
    if (!signal.aborted && codeOf(error) === undefined) throw error
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks).subarray(0, KEPT_BYTES))
  // PostgreSQL's text cannot hold NUL.
  return text.replaceAll('\0', '\u{fffd}')
}

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
  ETIMEDOUT: 'the connection timed out',
  EPIPE: 'the connection was closed',
  HPE_HEADER_OVERFLOW: `the headers of the response exceed ${HEADER_BYTES} bytes`,
}

/** Describes an error by its code alone, because messages of Node name addresses inside the network. */
function errorText(error: unknown): string {
  if (error instanceof MooringError) return error.message
  if (error instanceof AggregateError && error.errors.length > 0) return errorText(error.errors[0])
  const code = codeOf(error)
  if (code === undefined) return 'the request failed'
  return TEXTS[code] ?? (code.startsWith('HPE_') ? `the response is no HTTP: ${code}` : `the connection failed: ${code}`)
}
