import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { codeOf, MooringError } from '../../../shared/errors.ts'

/** DNS server. */
export interface DnsServer {
  /** Host name or IP address. */
  readonly host: string
  readonly port: number
}

/** Largest message by UDP (RFC 1035, section 4.2.1). */
const UDP_MAX = 512
const UDP_TIMEOUTS_MS = [1_000, 2_000, 3_000]
const TCP_TIMEOUT_MS = 5_000
/** Bits QR and TC of the third byte of a header (RFC 1035, section 4.1.1): the message is a response; it is truncated. */
const [RESPONSE, TRUNCATED] = [0x80, 0x02]

/** Reads `host:port`; the port is 53 by default. IPv6 addresses are in brackets. */
export function serverIn(text: string): DnsServer {
  const [, bracketed, host = '', port = '53'] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? []
  return { host: bracketed ?? host, port: Number(port) }
}

/** Returns the text of a server for messages, without the default port. */
export const serverName = ({ host, port }: DnsServer): string => {
  const shown = isIP(host) === 6 ? `[${host}]` : host
  return port === 53 ? shown : `${shown}:${port}`
}

/**
 * Sends a message and returns the response: by UDP, or by TCP when the message or the response does not fit (RFC 7766). A message without a
 * response is sent again, so it must have no further effect when it arrives twice.
 * @throws MooringError `dns_unreachable`
 */
export async function exchange(server: DnsServer, message: Buffer): Promise<Buffer> {
  try {
    const { address } = await lookup(server.host)
    const at = { host: address, port: server.port }
    if (message.length > UDP_MAX) return await byTcp(at, message)
    const response = await byUdp(at, message)
    return response.readUInt8(2) & TRUNCATED ? await byTcp(at, message) : response
  } catch (cause) {
    const why = codeOf(cause) ?? (cause instanceof Error ? cause.message : String(cause))
    throw new MooringError('dns_unreachable', `the DNS server ${serverName(server)} cannot be reached (${why})`, { cause })
  }
}

const NO_ANSWER = 'timeout: no answer'

/** Whether the bytes are the response to a message, by its id. */
const isAnswer = (bytes: Buffer, message: Buffer): boolean =>
  bytes.length >= 12 && bytes.subarray(0, 2).equals(message.subarray(0, 2)) && (bytes.readUInt8(2) & RESPONSE) !== 0

async function byUdp({ host, port }: DnsServer, message: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  let timer: NodeJS.Timeout | undefined
  const attempt = ([timeoutMs, ...later]: readonly number[]): void => {
    if (timeoutMs === undefined) return reject(new Error(NO_ANSWER))
    socket.send(message, (error) => error && reject(error))
    timer = setTimeout(() => attempt(later), timeoutMs)
  }
  socket.on('error', reject)
  socket.on('message', (bytes) => {
    if (isAnswer(bytes, message)) resolve(bytes)
  })
  // A connected socket receives messages from this server only, and reports a closed port.
  socket.connect(port, host, () => attempt(UDP_TIMEOUTS_MS))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

async function byTcp({ host, port }: DnsServer, message: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = connect({ host, port, signal: AbortSignal.timeout(TCP_TIMEOUT_MS) })
  let received = Buffer.alloc(0)
  socket.on('error', (error) => reject(error.name === 'AbortError' ? new Error(NO_ANSWER) : error))
  socket.on('close', () => reject(new Error('it closed the connection')))
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes])
    const size = received.length >= 2 ? received.readUInt16BE(0) : Infinity
    if (received.length < 2 + size) return
    const response = received.subarray(2, 2 + size)
    if (isAnswer(response, message)) resolve(response)
    else reject(new Error('its response is to another message'))
  })
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  socket.write(Buffer.concat([length, message]))
  try {
    return await promise
  } finally {
    socket.destroy()
  }
}
