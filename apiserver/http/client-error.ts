import { type IncomingMessage, maxHeaderSize, type RequestListener, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody, ApiError } from './errors.ts'
import { isLoopbackHost, wrongHost } from '../../process/listeners.ts'
import { USE_HTTPS } from '../../process/plain-http.ts'
import { requestIdOf } from './request-context.ts'

interface Rejection {
  readonly status: string
  readonly error: ApiError
}

const rejection = (status: string, message: string): Rejection => ({ status, error: new ApiError('invalid_request', message) })

const REJECTIONS: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: rejection(
    '431 Request Header Fields Too Large',
    `the request line and headers are larger than ${maxHeaderSize} bytes`,
  ),
  ERR_HTTP_REQUEST_TIMEOUT: rejection('408 Request Timeout', 'the request did not arrive in time'),
}
const MALFORMED = rejection('400 Bad Request', 'the request is not valid HTTP/1.1')
const NO_TLS = rejection('400 Bad Request', USE_HTTPS)
const NO_HOST = rejection('400 Bad Request', 'an HTTP/1.1 request must have a Host header')
const misdirected = (host: string): Rejection => rejection('421 Misdirected Request', wrongHost(host))
const EXPECTATION = rejection('417 Expectation Failed', 'the only supported expectation is 100-continue')
const ALLOWED = 'DELETE, GET, HEAD, PATCH, POST, PUT'
const CONNECT: Rejection = {
  status: '405 Method Not Allowed',
  error: new ApiError('method_not_allowed', `CONNECT is not allowed here; allowed: ${ALLOWED}`, { headers: { Allow: ALLOWED } }),
}

/** Milliseconds that a rejected CONNECT has to read its answer. */
const LINGER_MS = 1_000

/**
 * Answers input that Node's parser rejected before it became a request, with the usual JSON, and closes the connection. For the event `clientError`
 * of a server.
 */
export function respondToClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { text } = answerOf(REJECTIONS[error.code ?? ''] ?? MALFORMED)
  socket.end(text)
}

/** Returns the response to plain HTTP on a port for HTTPS. */
export const plainHttpResponse = (): string => answerOf(NO_TLS).text

/** Rejects CONNECT with 405. For the event `connect` of a server; without a handler Node closes the connection without an answer. */
export function respondToConnect(req: IncomingMessage, socket: Duplex): void {
  // Node detaches this connection from the server, so its errors and its end are handled here.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.resume().end(answerOf(CONNECT, req).text)
}

/** Rejects an unknown expectation with 417 and the usual JSON (RFC 9110, section 10.1.1). For the event `checkExpectation` of a server. */
export function respondToExpectation(req: IncomingMessage, res: ServerResponse): void {
  reject(req, res, EXPECTATION)
}

/** Wraps `app` and rejects an HTTP/1.1 request without Host (RFC 9112, section 3.2). For a server with `requireHostHeader: false`. */
export function requireHost(app: RequestListener): RequestListener {
  return function requireHost(req, res) {
    if (req.httpVersion === '1.1' && req.headers.host === undefined) reject(req, res, NO_HOST)
    else app(req, res)
  }
}

/** Wraps `app` for a loopback listener: a Host that names another machine is 421 (RFC 9110, section 15.5.20). */
export function requireLoopbackHost(app: RequestListener, publicNames: readonly string[] = []): RequestListener {
  return function requireLoopbackHost(req, res) {
    const { host } = req.headers
    if (host !== undefined && !isLoopbackHost(host, publicNames)) reject(req, res, misdirected(host))
    else app(req, res)
  }
}

function reject(req: IncomingMessage, res: ServerResponse, rejection: Rejection): void {
  const { headers, body } = answerOf(rejection, req)
  res.writeHead(Number.parseInt(rejection.status), headers).end(body)
  req.resume()
}

function answerOf({ status, error }: Rejection, req?: IncomingMessage) {
  const requestId = requestIdOf(req?.headers['x-request-id']?.toString())
  const body = JSON.stringify(errorBody(error, requestId))
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    'Cache-Control': 'no-store',
    ...error.headers,
    Connection: 'close',
  }
  const head = [`HTTP/1.1 ${status}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  return { headers, body, text: `${head.join('\r\n')}\r\n\r\n${body}` }
}
