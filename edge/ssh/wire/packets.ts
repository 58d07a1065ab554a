import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import crypto from 'ssh2/lib/protocol/crypto.js'
import type Protocol from 'ssh2/lib/protocol/Protocol.js'
import utils from 'ssh2/lib/protocol/utils.js'
import { compact } from '../../memory.ts'
import { string, uint32 } from '../wire-format.ts'
import { KEY_EXCHANGES, SIGNATURES } from './algorithms.ts'
import { takeHybrid } from './hybrid-kex.ts'

/** Whether ssh2's native ciphers are available. JavaScript ciphers are several times slower. */
export const nativeCiphers = crypto.bindingAvailable
/** Resolves when ciphers may be used. */
export const ciphersReady: Promise<void> = crypto.init

const EXT_INFO = 7
const POOL_BYTES = 16 * 1024
const pool = Buffer.alloc(POOL_BYTES)
let poolAt = POOL_BYTES
/** Block and tag size of AES-GCM (RFC 5647), in bytes. */
export const [BLOCK, TAG] = [16, 16]
const MIN_PADDING = 4

/** Sends a message that ssh2 has no function for. `now`: also during a key exchange. */
export function send(protocol: Protocol, payload: Buffer, { now }: { readonly now: boolean }): void {
  const writer = protocol._packetRW.write
  const start = now ? writer.allocStartKEX : writer.allocStart
  const packet = writer.alloc(payload.length, now)
  packet.set(payload, start)
  utils.sendPacket(protocol, writer.finalize(packet, now), now)
}

/** Corrects the end of a key exchange in ssh2: a wrong list of signatures, and a system call for the padding of each packet. */
export function refineHandshake(protocol: Protocol): void {
  const complete = protocol._onHandshakeComplete.bind(protocol)
  let first = true
  protocol._onHandshakeComplete = (...args) => {
    if (protocol._kex?.negotiated.sc.cipher.includes('gcm') && nativeCiphers) protocol._cipher.allocPacket = allocGcmPacket
    if (first && protocol._kex?.remoteExtInfoEnabled) {
      protocol._kex.remoteExtInfoEnabled = false
      const list = [string('server-sig-algs'), string(SIGNATURES.join())]
      send(protocol, Buffer.concat([Buffer.of(EXT_INFO), uint32(1), ...list]), { now: true })
    }
    first = false
    takeHybrid(protocol, KEY_EXCHANGES)
    complete(...args)
    forgetExchange(protocol)
  }
}

/**
 * Keeps only the parts of an exchange that logins and the next exchange need. Its keys, secret and offers would stay in memory as long
 * as the connection, and each small part of a shared buffer would keep all of it.
 */
function forgetExchange(protocol: Protocol): void {
  const { sessionID, negotiated } = protocol._kex ?? {}
  if (!sessionID || !negotiated) return
  protocol._kex = { sessionID: compact(sessionID), negotiated, remoteExtInfoEnabled: false }
  if (protocol._remoteIdentRaw) protocol._remoteIdentRaw = compact(protocol._remoteIdentRaw)
  const { _decipher: decipher } = protocol
  if (decipher._tag) decipher._tag = compact(decipher._tag)
}

/** Allocates a packet (RFC 5647, section 7.2) with room for the tag where ssh2's native cipher writes it. */
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
  // A loop: for so few bytes it costs less than a call of Buffer's own function.
  for (let at = 5 + payloadLength; at < 4 + length; at++) packet[at] = pool[poolAt++] ?? 0
  return packet
}
