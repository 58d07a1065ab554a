import known from 'ssh2/lib/protocol/handlers.js'
import { uint32 } from '../wire-format.ts'
import type { OwnedProtocol } from './handlers.ts'
import { send } from './packets.ts'

const UNIMPLEMENTED = 3

/**
 * Answers messages of types that there is no use for, which ssh2 drops (RFC 4253, section 11.4). Once there are keys: what is out of place while
 * they are exchanged ends the connection.
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
 * Lets a packet without a payload end the first exchange of keys where it is strict, as others that do not belong there; ssh2 passes over it. To
 * be called when it begins.
 */
export function refuseEmpty(protocol: OwnedProtocol): void {
  const decipher = protocol._decipher
  const onPayload = decipher._onPayload
  decipher._onPayload = (payload) => {
    // Before the client's KEXINIT nobody knows yet, but then KEXINIT is not the first packet, which ssh2 does see.
    if (payload.length > 0 || !protocol._strictMode) return onPayload(payload)
    protocol.owner?.events.broken()
    return Infinity
  }
}
