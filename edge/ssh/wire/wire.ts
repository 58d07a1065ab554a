import type Protocol from 'ssh2/lib/protocol/Protocol.js'
import { madeGarbage } from '../../memory.ts'
import { string, uint32 } from '../wire-format.ts'
import { KEY_EXCHANGES, peekOffer, type ClientOffer, type HostKeyRing, offerFor } from './algorithms.ts'
import { HANDLERS, OwnedProtocol, answerUnknown, refuseEmpty, type Reason, type WireEvents } from './messages.ts'
import { takeHybrid } from './hybrid-kex.ts'
import { refineHandshake, send } from './packets.ts'
import { readWholePackets } from './whole-packets.ts'

const DISCONNECT = 1
const BANNER = 53
const LOGIN_METHODS = ['publickey', 'password']
/**
 * Identification (RFC 4253, section 4.2), shared by all connections: ssh2 would create one each, a few bytes that keep a large buffer.
 */
const IDENT = Buffer.from('SSH-2.0-Mooring')
const IDENT_LINE = Buffer.from(`${IDENT.toString()}\r\n`)
/**
 * Maximum bytes before the key exchange begins: a client sends an identification, a KEXINIT and perhaps one guessed packet (RFC 4253,
 * sections 4.2 and 7.1).
 */
const MAX_HELD_BYTES = 48_000
/** Maximum length of a disconnect message; OpenSSH shows less (packet.c). */
const MAX_TEXT = 400

/**
 * The server's side of one SSH connection, below logins and channels. Only this folder knows ssh2, which provides packets and key
 * exchange.
 */
export class Wire {
  readonly #protocol: OwnedProtocol
  readonly #ring: HostKeyRing
  readonly #write: (data: Buffer) => void
  readonly events: WireEvents
  accepted = false
  #held: Buffer | undefined = Buffer.alloc(0)
  #mayBegin = false
  #exchanges = 0

  constructor(ring: HostKeyRing, write: (data: Buffer) => void, events: WireEvents) {
    this.#ring = ring
    this.#write = write
    this.events = events
    this.#protocol = new OwnedProtocol({
      server: true,
      hostKeys: ring,
      offer: offerFor(ring, undefined),
      onWrite: (data: Buffer | string) => {
        // A packet is garbage once it is written.
        madeGarbage(data.length)
        write(typeof data === 'string' ? Buffer.from(data) : data)
      },
      onError: () => events.broken(),
      onHeader: () => refuseEmpty(this.#protocol),
      onHandshakeComplete: () => {
        readWholePackets(this.#protocol)
        events.keysExchanged(++this.#exchanges === 1)
      },
      messageHandlers: HANDLERS,
    })
    this.#protocol.owner = this
    this.#protocol._identRaw = IDENT
    answerUnknown(this.#protocol)
    refineHandshake(this.#protocol)
    takeHybrid(this.#protocol, KEY_EXCHANGES)
  }

  start(): void {
    this.#write(IDENT_LINE)
  }

  /**
   * Handles received bytes.
   * @throws Error when they violate the protocol
   */
  receive(chunk: Buffer): void {
    if (this.#held === undefined) {
      this.#protocol.parse(chunk, 0, chunk.length)
      return
    }
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    if (this.#mayBegin) this.#beginIfOffered(this.#held)
    else if (this.#held.length > MAX_HELD_BYTES) this.events.broken()
  }

  /**
   * Allows the key exchange; bytes that arrived before were kept.
   * @throws Error when they violate the protocol
   */
  proceed(): void {
    this.#mayBegin = true
    if (this.#held !== undefined && this.#held.length > 0) this.#beginIfOffered(this.#held)
  }

  /** Begins the key exchange with a client that waits for the server to begin. */
  beginAnyway(): void {
    if (this.#mayBegin && this.#held !== undefined && this.#held.length > 0) this.#begin(undefined)
  }

  #beginIfOffered(held: Buffer): void {
    const peek = peekOffer(held)
    if (peek !== 'more') this.#begin(peek === 'unreadable' ? undefined : peek)
  }

  /** Whether the client has begun to exchange keys. */
  get begun(): boolean {
    return this.#held === undefined
  }

  #begin(client: ClientOffer | undefined): void {
    const held = this.#held ?? Buffer.alloc(0)
    this.#held = undefined
    this.#protocol._offer = offerFor(this.#ring, client)
    this.#protocol.parse(held, 0, held.length)
  }

  /** Stops all events from now on. */
  mute(): void {
    this.#protocol.owner = undefined
  }

  /** Whether keys are exchanged: messages wait in memory meanwhile. */
  get exchanging(): boolean {
    return this.#protocol._kexinit !== undefined
  }

  /** Number of messages that wait for the end of an exchange. */
  get queued(): number {
    return this.#protocol._queue?.length ?? 0
  }

  rekey(): void {
    this.#protocol.rekey()
  }

  /** Sends a disconnect; `text` is what the client shows its user. */
  disconnect(reason: Reason, text: string): void {
    const payload = Buffer.concat([Buffer.of(DISCONNECT), uint32(reason), string(text.slice(0, MAX_TEXT)), string('')])
    send(this.#protocol, payload, { now: true })
  }

  /** Frees memory that is not garbage collected. Nothing may be sent afterwards. */
  release(): void {
    this.#protocol.cleanup()
  }

  banner(text: string): void {
    send(this.#protocol, Buffer.concat([Buffer.of(BANNER), string(text), string('')]), { now: false })
  }

  accept(): void {
    this.accepted = true
    this.#protocol.authSuccess()
  }

  /** Refuses a login attempt; the reply does not depend on the cause. */
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
