import { type IncomingMessage, maxHeaderSize, type RequestListener, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody } from './error-answer.ts'
import { isLoopbackHost, wrongHost } from '../../process/loopback-host.ts'
import { ApiError } from './errors.ts'
import { requestIdOf } from './request-context.ts'

interface Refusal {
  readonly status: string
  readonly error: ApiError
}

const refusal = (status: string, message: string): Refusal => ({ status, error: new ApiError('invalid_request', message) })

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: refusal(
    '431 Request Header Fields Too Large',
    `the request line and headers are larger than ${maxHeaderSize} bytes`,
  ),
  ERR_HTTP_REQUEST_TIMEOUT: refusal('408 Request Timeout', 'the request did not arrive in time'),
}
const MALFORMED = refusal('400 Bad Request', 'the request is not valid HTTP/1.1')
const NO_HOST = refusal('400 Bad Request', 'a request of HTTP/1.1 must have a Host')
const misdirected = (host: string): Refusal => refusal('421 Misdirected Request', wrongHost(host))
const EXPECTATION = refusal('417 Expectation Failed', 'only 100-continue can be expected')
const ALLOWED = 'DELETE, GET, HEAD, PATCH, POST, PUT'
const CONNECT: Refusal = {
  status: '405 Method Not Allowed',
  error: new ApiError('method_not_allowed', `CONNECT is not allowed here; allowed: ${ALLOWED}`, { headers: { Allow: ALLOWED } }),
}

/** How long a refused caller has to read its answer and go. */
const LINGER_MS = 1_000

/**
 * Answers what Node's parser refused before there was a request: the same JSON as everywhere, then the end of the connection.
 * For the event `clientError` of a server.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { text } = answerOf(REFUSALS[error.code ?? ''] ?? MALFORMED)
  socket.end(text)
}

/** For the event `connect` of a server, without which Node closes the connection and says nothing: this is no proxy. */
export function answerConnect(req: IncomingMessage, socket: Duplex): void {
  // Nobody else looks after this connection any more.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.resume().end(answerOf(CONNECT, req).text)
}

/** For the event `checkExpectation` of a server: Node would answer without a body (RFC 9110, section 10.1.1). */
export function answerExpectation(req: IncomingMessage, res: ServerResponse): void {
  refuse(req, res, EXPECTATION)
}

/** `app`, for a server that leaves it to us to require a Host, which every request of HTTP/1.1 has (RFC 9112, section 3.2). */
export function requireHost(app: RequestListener): RequestListener {
  return function requireHost(req, res) {
    if (req.httpVersion === '1.1' && req.headers.host === undefined) refuse(req, res, NO_HOST)
    else app(req, res)
  }
}

/** `app`, for a listener on loopback: a Host that names another machine is 421 (RFC 9110, section 15.5.20). */
export function requireLoopbackHost(app: RequestListener, publicNames: readonly string[] = []): RequestListener {
  return function requireLoopbackHost(req, res) {
    const { host } = req.headers
    if (host !== undefined && !isLoopbackHost(host, publicNames)) refuse(req, res, misdirected(host))
    else app(req, res)
  }
}

function refuse(req: IncomingMessage, res: ServerResponse, why: Refusal): void {
  const { headers, body } = answerOf(why, req)
  res.writeHead(Number.parseInt(why.status), headers).end(body)
  req.resume()
}

function answerOf({ status, error }: Refusal, req?: IncomingMessage) {
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
