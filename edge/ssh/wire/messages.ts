import Protocol from 'ssh2/lib/protocol/Protocol.js'
import known from 'ssh2/lib/protocol/handlers.js'
import type { ChannelMessages } from '../../channels/channel.ts'
import type { RsaHash } from '../public-key.ts'
import { WireReader, uint32 } from '../wire-format.ts'
import { send } from './packets.ts'

/** Reason codes of a disconnect (RFC 4253, section 11.1). */
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

/** Login attempt (RFC 4252, sections 5 to 8). Without `signature`: only the question whether the key is acceptable. */
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

/** Global request of a client. */
export type GlobalRequest =
  | { readonly name: 'tcpip-forward' | 'cancel-tcpip-forward'; readonly bindHost: string; readonly bindPort: number }
  | { readonly name: 'streamlocal-forward@openssh.com'; readonly path: string }
  | { readonly name: 'other' }

/** Host and port that a client names for a channel (RFC 4254, section 7.2). */
export interface Target {
  readonly host: string
  readonly port: number
}

/** Messages of a client. Only `keysExchanged`, `auth` and `broken` occur before `accept`. */
export interface WireEvents {
  readonly channels: ChannelMessages
  /** `first`: the connection is encrypted from here on. */
  keysExchanged(first: boolean): void
  auth(request: AuthRequest): void
  global(request: GlobalRequest, wantReply: boolean): void
  /** Answer to a `ping`. */
  pong(): void
  disconnected(): void
  /** The client violated the protocol; the connection must be closed. */
  broken(): void
}

/** Receiver of a protocol's messages. */
interface Owner {
  readonly accepted: boolean
  readonly events: WireEvents
}

/** ssh2's protocol with its receiver: ssh2 passes its handlers no other context. */
export class OwnedProtocol extends Protocol {
  owner: Owner | undefined = undefined
}

type Handler = (protocol: OwnedProtocol, ...args: never[]) => void

const before =
  <A extends unknown[]>(handle: (events: WireEvents, ...args: A) => void) =>
  (protocol: OwnedProtocol, ...args: A): void => {
    const { owner } = protocol
    if (owner?.accepted) handle(owner.events, ...args)
    else owner?.events.broken()
  }

/** Value of a field that a message was too short for. In a run of numbers, the last one is undefined if any is. */
type Unread = undefined

interface Opening {
  readonly type: string | Unread
  readonly sender: number
  readonly window: number
  readonly packetSize: number | Unread
  /** Has these fields for a channel of the type `direct-tcpip`. */
  readonly data?: { readonly destIP?: unknown; readonly destPort?: unknown }
}
/** Complete: ssh2 has checked it. */
interface Confirmation {
  readonly recipient: number
  readonly sender: number
  readonly window: number
  readonly packetSize: number
}

/** Handlers of all connections, by the names of ssh2. */
export const HANDLERS: Readonly<Record<string, Handler>> = {
  DISCONNECT: (protocol) => protocol.owner?.events.disconnected(),
  SERVICE_REQUEST(protocol, name: string) {
    if (name === 'ssh-userauth') protocol.serviceAccept(name)
    else protocol.owner?.events.broken()
  },
  USERAUTH_REQUEST(protocol, ...[user, service, method, data]: [string | Unread, string, string, unknown]) {
    const { owner } = protocol
    const request = authRequest(user, method, data)
    if (owner?.accepted || service !== 'ssh-connection' || !request) owner?.events.broken()
    else owner?.events.auth(request)
  },
  GLOBAL_REQUEST: before((events, name: string | Unread, wantReply: boolean, data: unknown) => {
    const request = globalRequest(name, data)
    if (request) events.global(request, wantReply)
    else events.broken()
  }),
  REQUEST_SUCCESS: before((events) => events.pong()),
  REQUEST_FAILURE: before((events) => events.pong()),
  CHANNEL_OPEN: before((events, { type, sender, window, packetSize, data }: Opening) => {
    if (type === undefined || packetSize === undefined) events.broken()
    else events.channels.opening(type, { id: sender, window, maxPacket: packetSize }, targetOf(type, data))
  }),
  CHANNEL_OPEN_CONFIRMATION: before((events, { recipient, sender, window, packetSize }: Confirmation) => {
    events.channels.confirmed(recipient, { id: sender, window, maxPacket: packetSize })
  }),
  CHANNEL_OPEN_FAILURE: before((events, id: number, reason: number) => events.channels.refused(id, reason)),
  CHANNEL_WINDOW_ADJUST: before((events, id: number, bytes: number) => events.channels.window(id, bytes)),
  CHANNEL_DATA: before((events, id: number, data: Buffer) => events.channels.data(id, data, false)),
  CHANNEL_EXTENDED_DATA: before((events, id: number, data: Buffer) => events.channels.data(id, data, true)),
  CHANNEL_EOF: before((events, id: number) => events.channels.ended(id)),
  CHANNEL_CLOSE: before((events, id: number) => {
    // Many clients (Go's) close a channel without an EOF when their target ends. A lost client closes none.
    events.channels.ended(id)
    events.channels.closed(id)
  }),
  CHANNEL_REQUEST: before((events, ...[id, type, wantReply, data]: [number, string | Unread, boolean, unknown]) => {
    if (type === undefined) events.broken()
    else events.channels.request(id, { type, wantReply, detail: typeof data === 'string' ? data : '' })
  }),
}

/** Target of a channel; undefined for a channel of another type, and when it is incomplete. */
function targetOf(type: string, { destIP: host, destPort: port }: Opening['data'] = {}): Target | undefined {
  return type === 'direct-tcpip' && typeof host === 'string' && typeof port === 'number' ? { host, port } : undefined
}

interface KeyMethod {
  readonly keyAlgo: string
  readonly key: Buffer | Unread
  readonly hashAlgo?: RsaHash
  readonly signature?: Buffer
  readonly blob?: Buffer
}

function authRequest(user: string | Unread, method: string, data: unknown): AuthRequest | Unread {
  if (user === undefined) return undefined
  if (method === 'password') {
    // The other form changes the password (RFC 4252, section 8), which is not supported.
    return typeof data === 'string' ? { method, user, password: data } : { method: 'other', user }
  }
  if (method !== 'publickey') return method === 'none' ? { method, user } : { method: 'other', user }
  const { key, keyAlgo, hashAlgo, signature, blob } = data as KeyMethod
  if (key === undefined) return undefined
  // The name must be that of the key (RFC 4252, section 7): ssh2 turns `rsa-sha2-…` into `ssh-rsa` and a hash.
  if (new WireReader(key).text() !== keyAlgo) return { method: 'other', user }
  const signed = signature && blob ? { signature: { bytes: signature, of: blob } } : {}
  return { method, user, blob: key, hash: hashAlgo, ...signed }
}

function globalRequest(name: string | Unread, data: unknown): GlobalRequest | Unread {
  if (name === undefined) return undefined
  // Complete: ssh2 has checked it.
  if (name === 'streamlocal-forward@openssh.com') return { name, path: (data as { socketPath: string }).socketPath }
  if (name !== 'tcpip-forward' && name !== 'cancel-tcpip-forward') return { name: 'other' }
  const { bindAddr, bindPort } = data as { bindAddr: string | Unread; bindPort: number }
  return bindAddr === undefined ? undefined : { name, bindHost: bindAddr, bindPort }
}

const UNIMPLEMENTED = 3

/**
 * Answers messages of unknown types, which ssh2 drops (RFC 4253, section 11.4). This applies once keys are established: an unexpected
 * message during a key exchange ends the connection.
 */
export function answerUnknown(protocol: OwnedProtocol): void {
  const onPayload = protocol._onPayload
  protocol._onPayload = (payload) => {
    const type = payload[0]
    if (type === undefined || known[type] !== undefined) return onPayload(payload)
    if (protocol.owner) {
      const number = (protocol._decipher.inSeqno - 1) >>> 0
      send(protocol, Buffer.concat([Buffer.of(UNIMPLEMENTED), uint32(number)]), { now: false })
    }
    return undefined
  }
}

/**
 * Ends the connection at a packet without a payload during a strict first key exchange, as other unexpected packets do; ssh2 ignores
 * it. Call when the exchange begins.
 */
export function refuseEmpty(protocol: OwnedProtocol): void {
  const decipher = protocol._decipher
  const onPayload = decipher._onPayload
  decipher._onPayload = (payload) => {
    // Strictness is unknown before the client's KEXINIT, but then KEXINIT is not the first packet, which ssh2 detects.
    if (payload.length > 0 || !protocol._strictMode) return onPayload(payload)
    protocol.owner?.events.broken()
    return Infinity
  }
}
