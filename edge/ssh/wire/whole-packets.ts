import { Buffer } from 'node:buffer'
import { MAX_PACKET_BYTES } from './algorithms.ts'
import type { OwnedProtocol } from './handlers.ts'
import { BLOCK, nativeCiphers, TAG } from './packets.ts'

const LENGTH_BYTES = 4
/** Padding's length, type, channel, and length of the data. */
const DATA_AT = 10
const CHANNEL_DATA = 94

/** One for all connections: it is read before the next one is needed. ssh2's own would keep the larger buffer that it is a piece of. */
const tag = Buffer.alloc(TAG)

/**
 * Has data of channels that comes in a whole packet of AES-GCM (RFC 5647; RFC 4254, section 5.2) go to its reader at once, with two objects made for it where ssh2
 * makes five: most of what comes is that, and it was a thirtieth of all that a request costs. What is anything else, or not whole, goes on to ssh2 as before; so does
 * all that comes while keys are exchanged. To be called when that is over: each exchange makes a new decipher.
 */
export function readWholePackets(protocol: OwnedProtocol): void {
  const decipher = protocol._decipher
  const native = decipher._instance
  if (!nativeCiphers || !native || !protocol._kex?.negotiated.cs.cipher.includes('gcm')) return
  const decrypt = decipher.decrypt.bind(decipher)

  decipher.decrypt = (data, from, end) => {
    let at = from
    while (at < end) {
      const length = decipher._lenBytes === 0 ? wholeLength(data, at, end) : 0
      if (length === 0) return decrypt(data, at, end)
      const packet = data.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length)
      at += LENGTH_BYTES + length + TAG
      for (let byte = 0; byte < TAG; byte++) tag[byte] = data[at - TAG + byte] ?? 0
      native.decrypt(packet, length, tag)
      decipher.inSeqno = (decipher.inSeqno + 1) >>> 0
      const result = handOn(protocol, packet)
      if (result !== undefined) return result === false ? at : result
    }
    return undefined
  }
}

/** @throws RangeError when its padding is longer than it is */
function handOn(protocol: OwnedProtocol, packet: Buffer): ReturnType<OwnedProtocol['_onPayload']> {
  const { owner, _decipher: decipher } = protocol
  const bytes = owner?.accepted === true && decipher._onPayload === protocol._onPayload ? dataBytes(packet) : -1
  if (!owner || bytes < 0) return decipher._onPayload(payloadOf(packet))
  owner.events.channels.data(uint32At(packet, 2), packet.subarray(DATA_AT, DATA_AT + bytes), false)
  return undefined
}

function payloadOf(packet: Buffer): Buffer {
  const end = packet.length - (packet[0] ?? 0)
  if (end < 1) throw new RangeError('the padding of a packet is longer than it is')
  return packet.subarray(1, end)
}

/** Of the packet that begins there, when it is there to its end and of a length that may be; else 0. */
function wholeLength(data: Buffer, at: number, end: number): number {
  const length = uint32At(data, at)
  const isWhole = length <= end - at - LENGTH_BYTES - TAG
  return isWhole && length >= BLOCK && length % BLOCK === 0 && length <= MAX_PACKET_BYTES - LENGTH_BYTES - TAG ? length : 0
}

/** Bytes of data in a decrypted packet, if it is CHANNEL_DATA and nothing else; else -1. */
function dataBytes(packet: Buffer): number {
  if (packet[1] !== CHANNEL_DATA) return -1
  const bytes = uint32At(packet, 6)
  return DATA_AT + bytes + (packet[0] ?? 0) === packet.length ? bytes : -1
}

/** A call of Buffer's own costs more. */
function uint32At(bytes: Buffer, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
}
