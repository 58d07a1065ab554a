/**
 * Internal parts of ssh2 1.17.0 that this folder uses. They are not public: package.json pins the exact version, and an upgrade starts
 * with this file.
 */
declare module 'ssh2/lib/protocol/Protocol.js' {
  interface PacketWriter {
    readonly allocStart: number
    readonly allocStartKEX: number
    alloc(size: number, force?: boolean): Buffer
    finalize(packet: Buffer, force?: boolean): Buffer
  }
  /** Handles a message. `Infinity`: no message may follow; `false`: the following bytes are for another decipher. */
  type OnPayload = (payload: Buffer) => number | false | undefined
  /** Result of a key exchange. */
  export interface Exchanged {
    readonly sessionID?: Buffer
    readonly negotiated: {
      readonly kex: string
      readonly sc: { readonly cipher: string }
      readonly cs: { readonly cipher: string }
    }
    remoteExtInfoEnabled: boolean
  }
  export interface KeyExchange extends Exchanged {
    hashName: string
    _remoteKexinit: Buffer | undefined
    getPublicKey(): Buffer
    convertPublicKey(key: Buffer): Buffer
    computeSecret(key: Buffer): Buffer | Error
  }
  export default class Protocol {
    constructor(config: object)
    start(): void
    parse(chunk: Buffer, from: number, length: number): void
    cleanup(): void
    disconnect(reason: number): void
    ping(): void
    rekey(): void
    requestSuccess(data?: Buffer): void
    requestFailure(): void
    channelSuccess(channel: number): void
    channelFailure(channel: number): void
    channelEOF(channel: number): void
    channelClose(channel: number): void
    channelWindowAdjust(channel: number, bytes: number): void
    channelData(channel: number, data: Buffer): void
    channelExtData(channel: number, data: Buffer, type: number): void
    channelOpenConfirm(remote: number, local: number, window: number, maxPacket: number): void
    channelOpenFail(remote: number, reason: number, description: string): void
    forwardedTcpip(
      channel: number,
      window: number,
      maxPacket: number,
      addresses: { boundAddr: string; boundPort: number; remoteAddr: string; remotePort: number },
    ): void
    exitStatus(channel: number, status: number): void
    serviceAccept(name: string): void
    authFailure(methods: string[]): void
    authSuccess(): void
    authPKOK(algorithm: string, key: Buffer): void
    /** Set while keys are exchanged: messages are queued meanwhile. */
    _kexinit: Buffer | undefined
    _queue: readonly Buffer[] | undefined
    _kex: Exchanged | undefined
    _identRaw: Buffer
    _remoteIdentRaw: Buffer | undefined
    _offer: unknown
    _cipher: { allocPacket(payloadLength: number): Buffer; encrypt(packet: Buffer): void }
    _decipher: {
      /** Tag of an AEAD cipher, reused for each packet. */
      _tag?: Buffer
      /** Native part, which decrypts in place. Throws at a wrong tag. */
      readonly _instance?: { decrypt(packet: Buffer, length: number, tag: Buffer): void }
      /** Bytes of a packet's length field that have arrived: 0 between packets. */
      readonly _lenBytes: number
      /** Sequence number of the packet after the one that is being handled. */
      inSeqno: number
      _onPayload: OnPayload
      /** Returns the offset that it reached, if not the end. */
      decrypt(data: Buffer, from: number, end: number): number | undefined
    }
    /** Message handler of deciphers once keys are established; another one is in use during an exchange. */
    _onPayload: OnPayload
    /** Known once the client's first KEXINIT has arrived. */
    readonly _strictMode: boolean | undefined
    _packetRW: { readonly write: PacketWriter; readonly read: { read(payload: Buffer): Buffer } }
    _onHandshakeComplete: (...args: unknown[]) => void
  }
}

declare module 'ssh2/lib/protocol/kex.js' {
  export interface KexInit {
    readonly lists: { readonly kex: { array: string[] } }
  }
  const kex: { readonly KexInit: new (algorithms: object) => KexInit }
  export default kex
}

declare module 'ssh2/lib/protocol/handlers.js' {
  /** Handlers by message number; undefined for unknown messages. */
  const handlers: readonly (object | undefined)[]
  export default handlers
}

declare module 'ssh2/lib/protocol/crypto.js' {
  const crypto: { readonly bindingAvailable: boolean; readonly init: Promise<void> }
  export default crypto
}

declare module 'ssh2/lib/protocol/utils.js' {
  import type Protocol from 'ssh2/lib/protocol/Protocol.js'
  const utils: { sendPacket(protocol: Protocol, packet: Buffer, bypass?: boolean): boolean }
  export default utils
}
