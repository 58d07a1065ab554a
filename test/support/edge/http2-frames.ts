import { once } from 'node:events'
import { connect } from 'node:tls'

/** Frame types (RFC 9113, section 6). */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7, continuation: 9 } as const
const END_STREAM = 1
const END_HEADERS = 4

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
  const socket = connect({ port, host: '127.0.0.1', servername, ALPNProtocols: ['h2'], rejectUnauthorized: false })
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
