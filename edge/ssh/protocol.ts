import { randomFillSync } from 'node:crypto'
import crypto from 'ssh2/lib/protocol/crypto.js'
import kex, { type KexInit } from 'ssh2/lib/protocol/kex.js'
import Protocol from 'ssh2/lib/protocol/Protocol.js'
import utils from 'ssh2/lib/protocol/utils.js'
import { ciphersFor, type ClientOffer, KEY_EXCHANGES, MACS, peekOffer, SIGNATURES } from './algorithms.ts'
import type { HostKey } from './host-keys.ts'
import { HYBRID, takeHybrid } from './hybrid-kex.ts'
import type { RsaHash } from './public-key.ts'
import { string, uint32 } from './wire-format.ts'

/** The only file that knows ssh2 (with hybrid-kex.ts, which mends its key exchange): packets and key exchange are its, everything above is ours. */

/** Whether ssh2's native ciphers are there. Without them it runs on JavaScript ones, several times slower. */
export const nativeCiphers = crypto.bindingAvailable
/** Resolves when ciphers may be used. */
export const ciphersReady: Promise<void> = crypto.init

/** RFC 4253, section 11.1. */
export const Reason = {
  notAllowed: 1,
  protocolError: 2,
  keyExchangeFailed: 3,
  serviceNotAvailable: 7,
  connectionLost: 10,
  byApplication: 11,
  tooManyConnections: 12,
  noMoreAuthMethods: 14,
} as const
export type Reason = (typeof Reason)[keyof typeof Reason]

/** RFC 4254, section 5.1. */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** A login attempt (RFC 4252, sections 5 to 8). Without `signature`: only the question whether the key would do. */
export type AuthRequest =
  | { readonly method: 'password'; readonly user: string; readonly password: string }
  | {
      readonly method: 'publickey'
      readonly user: string
      readonly blob: Buffer
      readonly hash: RsaHash
      readonly signature?: { readonly bytes: Buffer; readonly of: Buffer }
    }
  | { readonly method: 'none'; readonly user: string }
  | { readonly method: 'other'; readonly user: string }

/** What a client asks beside channels. */
export type GlobalRequest =
  | { readonly name: 'tcpip-forward' | 'cancel-tcpip-forward'; readonly bindHost: string; readonly bindPort: number }
  | { readonly name: 'other' }

/** A request about a channel (RFC 4254, section 5.4). */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  readonly detail: string
}

/** What comes from a client. Nothing but `keysExchanged`, `auth` and `broken` before `accept`. */
export interface WireEvents {
  /** `first`: the connection is encrypted from here on. */
  keysExchanged(first: boolean): void
  auth(request: AuthRequest): void
  global(request: GlobalRequest, wantReply: boolean): void
  channelOpen(opening: { type: string; sender: number; window: number; maxPacket: number }): void
  channelConfirmed(id: number, remote: { id: number; window: number; maxPacket: number }): void
  channelRefused(id: number, reason: number): void
  channelWindow(id: number, bytes: number): void
  channelData(id: number, data: Buffer, extended: boolean): void
  channelEnded(id: number): void
  channelClosed(id: number): void
  /** `detail`: the name of a signal, a command. */
  channelRequest(id: number, request: ChannelRequest): void
  /** An answer to a `ping`. */
  pong(): void
  disconnected(): void
  /** It does not speak the protocol; the connection is of no use any more. */
  broken(): void
}

interface KeyMethod {
  readonly keyAlgo: string
  readonly key: Buffer
  readonly hashAlgo?: 'sha256' | 'sha512'
  readonly signature?: Buffer
  readonly blob?: Buffer
}

const EXT_INFO = 7
const DISCONNECT = 1
const BANNER = 53
const LOGIN_METHODS = ['publickey', 'password']
/** Messages are this much longer than OpenSSH shows (packet.c). */
const MAX_TEXT = 400

/** ssh2's protocol, which knows whose it is: its handlers are given nothing else. */
class OwnedProtocol extends Protocol {
  owner: Wire | undefined = undefined
}

/** Keys under each name that a client may ask for (RFC 8332 has two for RSA). */
export type HostKeyRing = Readonly<Record<string, object>>

export function hostKeyRing(keys: readonly HostKey[]): HostKeyRing {
  const entries = keys.flatMap((key) => {
    const names = key.type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [key.type]
    const ours = { type: key.type, getPublicSSH: () => key.blob, sign: (data: Buffer, hash?: string) => key.sign(data, hash) }
    return names.map((name) => [name, ours] as const)
  })
  return Object.fromEntries(entries)
}

const offers = new Map<string, KexInit>()

/** Offers are the same for many clients: each is built once. */
function offerFor(ring: HostKeyRing, client: ClientOffer | undefined) {
  const serverHostKey = Object.keys(ring)
  const cipher = [...ciphersFor(client)]
  const name = [...serverHostKey, ...cipher].join()
  const known = offers.get(name)
  if (known) return known
  const direction = { cipher, mac: [...MACS], compress: ['none'], lang: [] }
  const exchanges = [HYBRID, ...KEY_EXCHANGES, 'kex-strict-s-v00@openssh.com']
  const offer = new kex.KexInit({ kex: exchanges, serverHostKey, cs: direction, sc: direction })
  // It is announced, and ssh2 must not choose it itself.
  offer.lists.kex.array = exchanges.filter((exchange) => exchange !== HYBRID)
  offers.set(name, offer)
  return offer
}

/** The server's side of one SSH connection, below logins and channels. */
export class Wire {
  readonly #protocol: OwnedProtocol
  readonly #ring: HostKeyRing
  readonly events: WireEvents
  accepted = false
  #held: Buffer | undefined = Buffer.alloc(0)
  #exchanges = 0

  constructor(ring: HostKeyRing, write: (data: Buffer) => void, events: WireEvents) {
    this.#ring = ring
    this.events = events
    this.#protocol = new OwnedProtocol({
      server: true,
      hostKeys: ring,
      ident: 'Mooring',
      offer: offerFor(ring, undefined),
      onWrite: (data: Buffer | string) => write(typeof data === 'string' ? Buffer.from(data) : data),
      onError: () => events.broken(),
      onHandshakeComplete: () => events.keysExchanged(++this.#exchanges === 1),
      messageHandlers: HANDLERS,
    })
    this.#protocol.owner = this
    refineHandshake(this.#protocol)
    takeHybrid(this.#protocol, KEY_EXCHANGES)
  }

  start(): void {
    this.#protocol.start()
  }

  /** @throws Error on bytes that are no SSH */
  receive(chunk: Buffer): void {
    if (this.#held === undefined) this.#protocol.parse(chunk, 0, chunk.length)
    else {
      this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
      const peek = peekOffer(this.#held)
      if (peek !== 'more') this.#begin(peek === 'unreadable' ? undefined : peek)
    }
  }

  /** Lets the key exchange begin with a client that waits for us to speak first. */
  beginAnyway(): void {
    if (this.#held !== undefined && this.#held.length > 0) this.#begin(undefined)
  }

  #begin(client: ClientOffer | undefined): void {
    const held = this.#held ?? Buffer.alloc(0)
    this.#held = undefined
    this.#protocol._offer = offerFor(this.#ring, client)
    this.#protocol.parse(held, 0, held.length)
  }

  /** Nothing that comes from now on is told any more. */
  mute(): void {
    this.#protocol.owner = undefined
  }

  /** Keys are being exchanged: what is sent waits in memory until they are. */
  get exchanging(): boolean {
    return this.#protocol._kexinit !== undefined
  }

  rekey(): void {
    this.#protocol.rekey()
  }

  /** Says goodbye; `text` is what the client shows its user. */
  disconnect(reason: Reason, text: string): void {
    const payload = Buffer.concat([Buffer.of(DISCONNECT), uint32(reason), string(text.slice(0, MAX_TEXT)), string('')])
    send(this.#protocol, payload, true)
  }

  /** Frees what is not garbage collected. Nothing may be sent after it. */
  release(): void {
    this.#protocol.cleanup()
  }

  banner(text: string): void {
    send(this.#protocol, Buffer.concat([Buffer.of(BANNER), string(text), string('')]), false)
  }

  accept(): void {
    this.accepted = true
    this.#protocol.authSuccess()
  }

  /** The answer is the same whatever was wrong. */
  refuse(): void {
    this.#protocol.authFailure(LOGIN_METHODS)
  }

  wouldDo(algorithm: string, blob: Buffer): void {
    this.#protocol.authPKOK(algorithm, blob)
  }

  reply(success: boolean): void {
    if (success) this.#protocol.requestSuccess()
    else this.#protocol.requestFailure()
  }

  ping(): void {
    this.#protocol.ping()
  }

  get channels(): Pick<
    Protocol,
    | 'forwardedTcpip'
    | 'channelData'
    | 'channelExtData'
    | 'channelEOF'
    | 'channelClose'
    | 'channelWindowAdjust'
    | 'channelOpenConfirm'
    | 'channelOpenFail'
    | 'channelSuccess'
    | 'channelFailure'
    | 'exitStatus'
  > {
    return this.#protocol
  }
}

/** Sends a message that ssh2 has no function for. `now`: even while keys are being exchanged. */
function send(protocol: Protocol, payload: Buffer, now: boolean): void {
  const writer = protocol._packetRW.write
  const start = now ? writer.allocStartKEX : writer.allocStart
  const packet = writer.alloc(payload.length, now)
  packet.set(payload, start)
  utils.sendPacket(protocol, writer.finalize(packet, now), now)
}

/** Mends what ssh2 does at the end of a key exchange: a wrong list of signatures, and a system call for the padding of each packet. */
function refineHandshake(protocol: Protocol): void {
  const complete = protocol._onHandshakeComplete.bind(protocol)
  let first = true
  protocol._onHandshakeComplete = (...args) => {
    if (protocol._kex?.negotiated.sc.cipher.includes('gcm') && nativeCiphers) protocol._cipher.allocPacket = allocGcmPacket
    if (first && protocol._kex?.remoteExtInfoEnabled) {
      protocol._kex.remoteExtInfoEnabled = false
      const list = [string('server-sig-algs'), string(SIGNATURES.join())]
      send(protocol, Buffer.concat([Buffer.of(EXT_INFO), uint32(1), ...list]), true)
    }
    first = false
    takeHybrid(protocol, KEY_EXCHANGES)
    complete(...args)
  }
}

const POOL_BYTES = 16 * 1024
const pool = Buffer.alloc(POOL_BYTES)
let poolAt = POOL_BYTES
const [BLOCK, MIN_PADDING, TAG] = [16, 4, 16]

/** RFC 5647, section 7.2; the tag's room is where ssh2's native cipher puts it. */
function allocGcmPacket(payloadLength: number): Buffer {
  let padding = BLOCK - ((payloadLength + 1) & (BLOCK - 1))
  if (padding < MIN_PADDING) padding += BLOCK
  const length = 1 + payloadLength + padding
  const packet = Buffer.allocUnsafe(4 + length + TAG)
  packet.writeUInt32BE(length)
  packet[4] = padding
  if (poolAt + padding > POOL_BYTES) {
    randomFillSync(pool)
    poolAt = 0
  }
  pool.copy(packet, 5 + payloadLength, poolAt, poolAt + padding)
  poolAt += padding
  return packet
}

type Handler = (protocol: OwnedProtocol, ...args: never[]) => void

const before =
  <A extends unknown[]>(handle: (wire: Wire, ...args: A) => void) =>
  (protocol: OwnedProtocol, ...args: A): void => {
    const wire = protocol.owner
    if (wire?.accepted) handle(wire, ...args)
    else wire?.events.broken()
  }

/** One table for all connections, by the names that ssh2 calls them. */
const HANDLERS: Readonly<Record<string, Handler>> = {
  DISCONNECT: (protocol) => protocol.owner?.events.disconnected(),
  SERVICE_REQUEST(protocol, name: string) {
    if (name === 'ssh-userauth') protocol.serviceAccept(name)
    else protocol.owner?.events.broken()
  },
  USERAUTH_REQUEST(protocol, ...[user, service, method, data]: [string, string, string, unknown]) {
    const wire = protocol.owner
    if (wire?.accepted || service !== 'ssh-connection') wire?.events.broken()
    else wire?.events.auth(authRequest(user, method, data))
  },
  GLOBAL_REQUEST: before((wire, name: string, wantReply: boolean, data: unknown) => {
    wire.events.global(globalRequest(name, data), wantReply)
  }),
  REQUEST_SUCCESS: before((wire) => wire.events.pong()),
  REQUEST_FAILURE: before((wire) => wire.events.pong()),
  CHANNEL_OPEN: before((wire, info: { type: string; sender: number; window: number; packetSize: number }) => {
    wire.events.channelOpen({ type: info.type, sender: info.sender, window: info.window, maxPacket: info.packetSize })
  }),
  CHANNEL_OPEN_CONFIRMATION: before((wire, info: { recipient: number; sender: number; window: number; packetSize: number }) => {
    wire.events.channelConfirmed(info.recipient, { id: info.sender, window: info.window, maxPacket: info.packetSize })
  }),
  CHANNEL_OPEN_FAILURE: before((wire, id: number, reason: number) => wire.events.channelRefused(id, reason)),
  CHANNEL_WINDOW_ADJUST: before((wire, id: number, bytes: number) => wire.events.channelWindow(id, bytes)),
  CHANNEL_DATA: before((wire, id: number, data: Buffer) => wire.events.channelData(id, data, false)),
  CHANNEL_EXTENDED_DATA: before((wire, id: number, data: Buffer) => wire.events.channelData(id, data, true)),
  CHANNEL_EOF: before((wire, id: number) => wire.events.channelEnded(id)),
  CHANNEL_CLOSE: before((wire, id: number) => wire.events.channelClosed(id)),
  CHANNEL_REQUEST: before((wire, ...[id, type, wantReply, data]: [number, string, boolean, unknown]) => {
    wire.events.channelRequest(id, { type, wantReply, detail: typeof data === 'string' ? data : '' })
  }),
}

function authRequest(user: string, method: string, data: unknown): AuthRequest {
  if (method === 'password') {
    // The other form asks to change the password (RFC 4252, section 8), which there is no way to.
    return typeof data === 'string' ? { method, user, password: data } : { method: 'other', user }
  }
  if (method !== 'publickey') return method === 'none' ? { method, user } : { method: 'other', user }
  const { key, hashAlgo, signature, blob } = data as KeyMethod
  const signed = signature && blob ? { signature: { bytes: signature, of: blob } } : {}
  return { method, user, blob: key, hash: hashAlgo, ...signed }
}

function globalRequest(name: string, data: unknown): GlobalRequest {
  if (name !== 'tcpip-forward' && name !== 'cancel-tcpip-forward') return { name: 'other' }
  const { bindAddr, bindPort } = data as { bindAddr: string; bindPort: number }
  return { name, bindHost: bindAddr, bindPort }
}
