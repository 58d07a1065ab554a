import type { Carrier, RemoteEnd } from './channel.ts'

/** Maximum bytes of a packet. Larger packets gain nothing: clients announce 32 KiB. */
const MAX_PACKET_BYTES = 32 * 1024
const MAX_REMOTE_WINDOW = 0xffff_ffff
/**
 * Minimum packet size that a client may announce; a smaller one would make the edge work on each byte as on a packet. No known client
 * announces less than 1 KiB.
 */
export const MIN_PACKET_BYTES = 256

/** Bytes for a client on one channel, sent in packets as far as its window and line allow. The rest waits. */
export class SendQueue {
  readonly #carrier: Carrier
  #remote: RemoteEnd | undefined
  #packetBytes = 0
  #window = 0
  #unsent: Buffer[] = []

  constructor(carrier: Carrier) {
    this.#carrier = carrier
  }

  get remote(): RemoteEnd | undefined {
    return this.#remote
  }

  get empty(): boolean {
    return this.#unsent.length === 0
  }

  /** Begins sending to the confirmed channel of the client. */
  begin(remote: RemoteEnd): void {
    this.#remote = remote
    this.#packetBytes = Math.min(Math.max(MIN_PACKET_BYTES, remote.maxPacket), MAX_PACKET_BYTES)
    this.#window = remote.window
  }

  /** Adds window that the client granted (RFC 4254, section 5.2). */
  allow(bytes: number): void {
    this.#window = Math.min(this.#window + bytes, MAX_REMOTE_WINDOW)
  }

  /** Sends or queues a chunk and takes over its memory. */
  push(chunk: Buffer): void {
    if (this.#unsent.length > 0 || !this.#remote || !this.#carrier.ready) this.#unsent.push(chunk)
    else this.#send(this.#remote, chunk)
  }

  /** Sends queued data. */
  pump(): void {
    const remote = this.#remote
    while (remote && this.#unsent.length > 0 && this.#window > 0 && this.#carrier.ready) {
      const chunk = this.#unsent.shift()
      if (chunk) this.#send(remote, chunk)
    }
  }

  clear(): void {
    this.#unsent = []
  }

  /** Sends as much as the client and the line have room for; queues the rest in front. */
  #send({ id }: RemoteEnd, chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && this.#window > 0 && this.#carrier.ready) {
      const size = Math.min(chunk.length - at, this.#window, this.#packetBytes)
      this.#carrier.wire.channels.channelData(id, size === chunk.length ? chunk : chunk.subarray(at, at + size))
      this.#window -= size
      at += size
    }
    if (at < chunk.length) this.#unsent.unshift(chunk.subarray(at))
  }
}
