import { Buffer } from 'node:buffer'
import { MAX_PACKET_BYTES } from './algorithms.ts'
import type { OwnedProtocol } from './messages.ts'
import { BLOCK, nativeCiphers, TAG } from './packets.ts'

const LENGTH_BYTES = 4
/** Offset of the data: after padding length, type, channel and data length. */
const DATA_AT = 10
const CHANNEL_DATA = 94

/**
 * Tag buffer of all connections: it is read before the next packet needs it. ssh2's own would keep the larger buffer that it is a part
 * of.
 */
const tag = Buffer.alloc(TAG)

/**
 * Passes channel data of complete AES-GCM packets (RFC 5647; RFC 4254, section 5.2) directly to the receiver, with two objects for each
 * where ssh2 makes five: most packets are of this kind, and it took a thirtieth of the cost of a request. Other or incomplete packets
 * go to ssh2, and so does everything during a key exchange. Call after each exchange, which creates a new decipher.
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

/**
 * Handles a decrypted packet.
 * @throws RangeError when its padding is longer than the packet
 */
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

/** Returns the length of the packet at this offset when it is complete and its length is valid; else 0. */
function wholeLength(data: Buffer, at: number, end: number): number {
  const length = uint32At(data, at)
  const isWhole = length <= end - at - LENGTH_BYTES - TAG
  return isWhole && length >= BLOCK && length % BLOCK === 0 && length <= MAX_PACKET_BYTES - LENGTH_BYTES - TAG ? length : 0
}

/** Returns the number of data bytes in a decrypted packet that is CHANNEL_DATA and nothing else; else -1. */
function dataBytes(packet: Buffer): number {
  if (packet[1] !== CHANNEL_DATA) return -1
  const bytes = uint32At(packet, 6)
  return DATA_AT + bytes + (packet[0] ?? 0) === packet.length ? bytes : -1
}

/** Reads a number; a call of Buffer's own function costs more. */
function uint32At(bytes: Buffer, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
}
