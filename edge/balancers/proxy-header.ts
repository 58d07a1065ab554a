import { isIPv4, isIPv6, SocketAddress, type Socket } from 'node:net'
import { plainAddress } from '../../crds/formats/address-list.ts'

/** Address at the other end of a connection. */
export interface Peer {
  /** Plain address, as {@link plainAddress} returns it; empty when the connection has ended. */
  readonly address: string
  readonly port: number
}

/** Returns the peer of the socket itself. */
export function peerOf(socket: Socket): Peer {
  return { address: plainAddress(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
}

/** Header of the PROXY protocol, version 1 or 2 (haproxy.org, proxy-protocol.txt, sections 2.1 and 2.2). */
export interface ProxyHeader {
  /** Length in bytes; the client's bytes follow it. */
  readonly length: number
  /** Client that the balancer names. Undefined: the balancer's own connection, or a client without a TCP address. */
  readonly source: Peer | undefined
}

const TEXT = Buffer.from('PROXY ', 'latin1')
const BINARY = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])

/** Maximum length of a version 1 line, with its CRLF. */
const MAX_LINE = 107
const LINE = /^PROXY TCP([46]) ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/

/** Bytes of signature, version and command, family and transport, and length of the rest. */
const FIXED = 16
/** Maximum bytes of addresses and TLVs in version 2; the addresses alone are at most 216. */
const MAX_REST = 536
const VERSION_2 = 2
const Command = { local: 0, proxy: 1 } as const
const TCP4 = 0x11
const TCP6 = 0x21
/** Length of the addresses by family: none, IPv4, IPv6, Unix. */
const ADDRESSES = [0, 12, 36, 216] as const
/** Highest valid transport: none, stream, datagram. */
const DATAGRAM = 2

/**
 * Reads the header at the beginning of a connection. `none`: the bytes are no header. `more`: they may become one. `invalid`: the
 * header is malformed.
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'none' | 'more' | 'invalid' {
  if (begins(bytes, TEXT)) return bytes.length < TEXT.length ? 'more' : readLine(bytes)
  if (begins(bytes, BINARY)) return bytes.length < FIXED ? 'more' : readBinary(bytes)
  return 'none'
}

/** Whether the bytes so far match the signature. */
function begins(bytes: Buffer, signature: Buffer): boolean {
  const size = Math.min(bytes.length, signature.length)
  return bytes.compare(signature, 0, size, 0, size) === 0
}

function readLine(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  const end = bytes.subarray(0, MAX_LINE).indexOf('\r\n')
  if (end < 0) return bytes.length < MAX_LINE ? 'more' : 'invalid'
  const line = bytes.toString('latin1', 0, end)
  const length = end + 2
  // The rest of an UNKNOWN line is ignored.
  if (line === 'PROXY UNKNOWN' || line.startsWith('PROXY UNKNOWN ')) return { length, source: undefined }
  const source = sourceIn(line)
  return source ? { length, source } : 'invalid'
}

function sourceIn(line: string): Peer | undefined {
  const [, family, source = '', destination = '', port, destinationPort] = LINE.exec(line) ?? []
  const isOfFamily = family === '4' ? isIPv4 : isIPv6
  if (![source, destination].every((address) => isOfFamily(address)) || ![port, destinationPort].every(isPort)) return undefined
  return { address: family === '4' ? source : canonical(source), port: Number(port) }
}

const isPort = (port: string | undefined): boolean => Number(port) <= 65_535

function readBinary(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  const [versionAndCommand = 0, protocol = 0] = bytes.subarray(BINARY.length)
  const command = versionAndCommand & 0x0f
  const rest = bytes.readUInt16BE(FIXED - 2)
  if (versionAndCommand >> 4 !== VERSION_2 || command > Command.proxy || rest > MAX_REST) return 'invalid'
  // The addresses of a balancer's own connection are ignored.
  if (command === Command.proxy && !holdsAddresses(protocol, rest)) return 'invalid'
  const length = FIXED + rest
  if (bytes.length < length) return 'more'
  return { length, source: command === Command.proxy ? sourceOf(bytes, protocol) : undefined }
}

function holdsAddresses(protocol: number, rest: number): boolean {
  const addresses = ADDRESSES[protocol >> 4]
  return addresses !== undefined && (protocol & 0x0f) <= DATAGRAM && rest >= addresses
}

/** Returns the client; undefined for address families other than IPv4 and IPv6. */
function sourceOf(bytes: Buffer, protocol: number): Peer | undefined {
  if (protocol === TCP4) return { address: bytes.subarray(FIXED, FIXED + 4).join('.'), port: bytes.readUInt16BE(FIXED + 8) }
  if (protocol !== TCP6) return undefined
  const groups = Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(FIXED + 2 * group).toString(16))
  return { address: canonical(groups.join(':')), port: bytes.readUInt16BE(FIXED + 32) }
}

/** Formats an address as system sockets do (RFC 5952). */
const canonical = (address: string): string => plainAddress(new SocketAddress({ address, family: 'ipv6' }).address)
