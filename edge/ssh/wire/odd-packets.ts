import known from 'ssh2/lib/protocol/handlers.js'
import { uint32 } from '../wire-format.ts'
import type { OwnedProtocol } from './handlers.ts'
import { send } from './packets.ts'

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
