import { maxHeaderSize } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody } from './error-answer.ts'
import { ApiError } from './errors.ts'
import { requestIdOf } from './request-context.ts'

const TEXTS: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    `the request line and headers are larger than ${maxHeaderSize} bytes`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time'],
}
const MALFORMED = ['400 Bad Request', 'the request is not valid HTTP/1.1'] as const

/**
 * Answers what Node's parser refused before there was a request: the same JSON as everywhere, then the end of the connection.
 * For the event `clientError` of a server.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, message] = TEXTS[error.code ?? ''] ?? MALFORMED
  const requestId = requestIdOf(undefined)
  const body = JSON.stringify(errorBody(new ApiError('invalid_request', message), requestId))
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
