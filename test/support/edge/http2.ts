import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'

/** Response to an HTTP/2 request. Fields are names and values in turn, in the order received. */
export interface Http2Answer {
  /** Statuses of interim responses, in order. */
  readonly interim: readonly (readonly string[])[]
  readonly status: number
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  /** Error code of the closed stream (RFC 9113, section 7). */
  readonly code: number | undefined
}

interface Sent {
  readonly body?: string
  /** Body that is sent after a response 100. */
  readonly onContinue?: string
  readonly trailers?: OutgoingHttpHeaders
}

/** HTTP/2 connection of a client that follows the protocol. */
export interface Http2Client extends AsyncDisposable {
  /** Sends a request, by default `GET /` of its host. @throws Error without a response */
  ask(fields?: readonly string[], sent?: Sent): Promise<Http2Answer>
}

/** Opens a session to this machine with Node's own client. Its streams report errors, and so it does not. */
export function http2Session(port: number, host: string, options: object = {}): ClientHttp2Session {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { servername: host, rejectUnauthorized: false, ...options })
  return session.on('error', () => undefined)
}

/** Opens an HTTP/2 connection to this machine with Node's own client. */
export function http2Client(port: number, host: string): Http2Client {
  const session = http2Session(port, host, { maxSendHeaderBlockLength: 1_000_000 })

  async function ask(fields: readonly string[] = [], { body, onContinue, trailers }: Sent = {}): Promise<Http2Answer> {
    const pseudo = { ':method': 'GET', ':path': '/', ':scheme': 'https', ':authority': host }
    const raw = [...fields]
    for (const [name, value] of Object.entries(pseudo)) if (!raw.includes(name)) raw.unshift(name, value)
    const endStream = body === undefined && onContinue === undefined
    const stream = session.request(raw, { endStream, waitForTrailers: trailers !== undefined })
    const interim: string[][] = []
    const later: string[] = []
    stream.on('headers', (_headers, _flags, block: unknown) => interim.push(block as string[]))
    stream.on('trailers', (_headers, _flags, block: unknown) => later.push(...(block as string[])))
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}))
    stream.on('continue', () => stream.end(onContinue))
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    const responded = new Promise<string[]>((resolve, reject) => {
      stream.once('response', (_headers, _flags, block: unknown) => resolve(block as string[])).once('error', reject)
    })
    if (body !== undefined) stream.end(body)
    const answer = await responded
    const seen = await text(stream)
    await closed
    const status = Number(answer[answer.indexOf(':status') + 1])
    return { interim, status, fields: answer, body: seen, trailers: later, code: stream.rstCode }
  }

  return {
    ask,
    async [Symbol.asyncDispose]() {
      if (session.destroyed) return
      const gone = new Promise<void>((resolve) => session.once('close', resolve))
      session.destroy()
      await gone
    },
  }
}

/** Frame types (RFC 9113, section 6). */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7, continuation: 9 } as const
const END_STREAM = 1
const END_HEADERS = 4

/** Received frame. */
export interface Frame {
  readonly type: number
  readonly stream: number
  readonly payload: Buffer
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Encodes a string literal: its length with a prefix of seven bits, then its bytes (RFC 7541, section 5.1). */
function prefixed(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const rest: number[] = []
  for (let left = bytes.length - 127; ; left >>= 7) {
    rest.push(left < 128 ? left : (left & 127) | 128)
    if (left < 128) break
  }
  return Buffer.concat([Buffer.from([127, ...rest]), bytes])
}

/** Encodes fields as literals without indexing. Nothing validates their content. */
export const block = (fields: readonly (readonly [string, string])[]): Buffer =>
  Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), prefixed(name), prefixed(value)]))

export const headers = (stream: number, fields: Buffer, end: 'ends' | 'goes on' = 'ends'): Buffer =>
  frame(FRAME.headers, END_HEADERS | (end === 'ends' ? END_STREAM : 0), stream, fields)
export const openHeaders = (stream: number, fields: Buffer): Buffer => frame(FRAME.headers, 0, stream, fields)
export const continuation = (stream: number, fields: Buffer): Buffer => frame(FRAME.continuation, 0, stream, fields)
export const data = (stream: number, text: string): Buffer => frame(FRAME.data, END_STREAM, stream, Buffer.from(text, 'latin1'))
export const reset = (stream: number): Buffer => frame(FRAME.reset, 0, stream, Buffer.from([0, 0, 0, 8]))

/** SETTINGS_INITIAL_WINDOW_SIZE and WINDOW_UPDATE with the maximum window for each stream and for the connection. */
export const widestWindow: Buffer = Buffer.concat([
  frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])),
  frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0, 0])),
])

/** Connection preface (RFC 9113, section 3.4). */
export const PREFACE: Buffer = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(FRAME.settings, 0, 0, Buffer.alloc(0)),
])

/** Opens an HTTP/2 connection on which a test writes raw frames. */
export async function http2Visitor(port: number, servername: string) {
  const socket = connectTls({ port, host: '127.0.0.1', servername, ALPNProtocols: ['h2'], rejectUnauthorized: false })
  const seen: Frame[] = []
  let held = Buffer.alloc(0)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 9 && held.length >= 9 + held.readUIntBE(0, 3)) {
      const end = 9 + held.readUIntBE(0, 3)
      seen.push({ type: held.readUInt8(3), stream: held.readUInt32BE(5), payload: held.subarray(9, end) })
      held = held.subarray(end)
    }
  })
  await once(socket, 'secureConnect')
  socket.write(PREFACE)
  return { socket, seen, closed, [Symbol.dispose]: () => void socket.destroy() }
}
