import { isIP } from 'node:net'
import type { Channel, ChannelEvents } from '../channels/channel.ts'

/** Address that a client connects to on the edge's request. */
export interface Target {
  readonly host: string
  readonly port: number
}

const TARGET = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9][A-Za-z0-9.-]*)):(\d{1,5})$/
const MAX_PORT = 65_535
const MAX_NAME_BYTES = 255
const VERSION = 5
const NO_AUTHENTICATION = 0
const CONNECT = 1
const Address = { ipv4: 1, name: 3, ipv6: 4 } as const
const SUCCEEDED = 0
const NOT_ALLOWED = 2

/** Parses `host:port`; undefined when it is invalid. */
export function parseTarget(text: string): Target | undefined {
  const [, ipv6, name, digits] = TARGET.exec(text) ?? []
  const host = ipv6 ?? name ?? ''
  const port = Number(digits)
  if (host === '' || host.length > MAX_NAME_BYTES || !(port >= 1 && port <= MAX_PORT)) return undefined
  return ipv6 !== undefined && isIP(ipv6) !== 6 ? undefined : { host, port }
}

/** Returns the bytes that request a connection from a SOCKS 5 server (RFC 1928, sections 3 and 4): greeting and request together. */
export function socksRequest({ host, port }: Target): Buffer {
  const greeting = Buffer.of(VERSION, 1, NO_AUTHENTICATION)
  return Buffer.concat([greeting, Buffer.of(VERSION, CONNECT, 0), addressOf(host), Buffer.of(port >> 8, port & 0xff)])
}

function addressOf(host: string): Buffer {
  const family = isIP(host)
  if (family === 4) return Buffer.from([Address.ipv4, ...host.split('.').map(Number)])
  if (family === 6) return Buffer.concat([Buffer.of(Address.ipv6), ipv6Bytes(host)])
  return Buffer.concat([Buffer.of(Address.name, host.length), Buffer.from(host, 'latin1')])
}

function ipv6Bytes(host: string): Buffer {
  // The URL parser writes an embedded IPv4 address as two groups, and leaves `::` as the only abbreviation.
  const [head = '', tail] = new URL(`http://[${host}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex')
}

/** `length`: bytes of the answer; the target's bytes follow them. */
export type SocksReply = 'more' | 'refused' | 'prohibited' | { readonly length: number }

/** Reads the two answers to {@link socksRequest} (RFC 1928, sections 3 and 6). */
export function readSocksReply(data: Buffer): SocksReply {
  const expected = [VERSION, NO_AUTHENTICATION, VERSION]
  if (expected.some((byte, at) => (data[at] ?? byte) !== byte)) return 'refused'
  const result = data[3] ?? SUCCEEDED
  if (result !== SUCCEEDED) return result === NOT_ALLOWED ? 'prohibited' : 'refused'
  const address = addressLength(data[5], data[6])
  if (address === 'unknown') return 'refused'
  if (address === 'more') return 'more'
  const length = 2 + 4 + address + 2
  return data.length < length ? 'more' : { length }
}

function addressLength(kind: number | undefined, first: number | undefined): number | 'more' | 'unknown' {
  if (kind === undefined) return 'more'
  if (kind === Address.ipv4) return 4
  if (kind === Address.ipv6) return 16
  if (kind !== Address.name) return 'unknown'
  return first === undefined ? 'more' : 1 + first
}

interface SocksUse {
  readonly target: Target
  readonly events: ChannelEvents
  /** Called when the client could not reach the target, or does not allow it. */
  readonly onRefused: () => void
}

/**
 * Opens a channel that begins with a SOCKS handshake. Its user sees only the target's bytes, and `opened` when the target is reached.
 */
export function throughSocks({ target, events, onRefused }: SocksUse, open: (inner: ChannelEvents) => Channel): Channel {
  let answer: Buffer | undefined = Buffer.alloc(0)
  let destroyed = false
  let paused = false
  let ended = false
  let refusal: 'connect_failed' | 'prohibited' = 'connect_failed'
  const waiting: Buffer[] = []

  const channel = open({
    opened: () => void channel.write(socksRequest(target)),
    refused: (why) => events.refused(why),
    data(chunk) {
      if (answer === undefined) events.data(chunk)
      else read(Buffer.concat([answer, chunk]))
    },
    drained() {
      if (answer === undefined) events.drained()
    },
    ended() {
      if (answer === undefined) events.ended()
      else channel.destroy()
    },
    closed(how) {
      if (answer === undefined || destroyed) events.closed(how)
      else {
        onRefused()
        events.refused(refusal)
      }
    },
  })

  function read(data: Buffer): void {
    const read = readSocksReply(data)
    if (read === 'more') answer = data
    else if (typeof read === 'string') {
      if (read === 'prohibited') refusal = read
      channel.destroy()
    } else reached(data.subarray(read.length))
  }

  function reached(rest: Buffer): void {
    answer = undefined
    events.opened()
    if (paused) channel.pause()
    const clear = waiting.splice(0).reduce((_, chunk) => channel.write(chunk), true)
    if (ended) channel.end()
    else if (clear) events.drained()
    if (rest.length > 0 && !destroyed) events.data(rest)
  }

  return {
    write(chunk) {
      if (answer === undefined) return channel.write(chunk)
      if (!destroyed) waiting.push(chunk)
      return false
    },
    end() {
      ended = true
      if (answer === undefined) channel.end()
    },
    destroy() {
      destroyed = true
      waiting.length = 0
      channel.destroy()
    },
    pause() {
      paused = true
      if (answer === undefined) channel.pause()
    },
    resume() {
      paused = false
      if (answer === undefined) channel.resume()
    },
  }
}
