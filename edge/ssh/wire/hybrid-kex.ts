import { createHash, createPublicKey, diffieHellman, encapsulate, generateKeyPairSync } from 'node:crypto'
import type Protocol from 'ssh2/lib/protocol/Protocol.js'
import type { KeyExchange } from 'ssh2/lib/protocol/Protocol.js'
import { string, WireReader } from '../wire-format.ts'

/**
 * Key exchange that also resists quantum computers (draft-ietf-sshm-mlkem-hybrid-kex): ML-KEM-768 and X25519 together. Current clients
 * warn their users without it. ssh2 does not support it, so one of its X25519 exchanges gets other numbers.
 */
export const HYBRID = 'mlkem768x25519-sha256'
/** Exchange that ssh2 runs instead: also SHA-256 and one message in each direction. */
const STAND_IN = 'curve25519-sha256'

const KEM_KEY_BYTES = 1184
const X25519_BYTES = 32
const KEXINIT = 20
const COOKIE_END = 17

/**
 * Computes the server's reply and the shared secret.
 * @throws Error when the client's numbers are not valid keys
 */
export function answerHybrid(fromClient: Buffer): { readonly reply: Buffer; readonly secret: Buffer } {
  if (fromClient.length !== KEM_KEY_BYTES + X25519_BYTES) throw new Error('not an ML-KEM-768 and an X25519 key')
  const [kemKey, x] = [fromClient.subarray(0, KEM_KEY_BYTES), fromClient.subarray(KEM_KEY_BYTES)]
  const kem = encapsulate({ key: kemKey, format: 'raw-public', asymmetricKeyType: 'ml-kem-768' })
  const ours = generateKeyPairSync('x25519')
  const theirs = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: x.toString('base64url') }, format: 'jwk' })
  const shared = diffieHellman({ privateKey: ours.privateKey, publicKey: theirs })
  const ourX = Buffer.from(ours.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  return {
    reply: Buffer.concat([kem.ciphertext, ourX]),
    secret: createHash('sha256').update(kem.sharedKey).update(shared).digest(),
  }
}

/** Reads the names of key exchanges in a KEXINIT (RFC 4253, section 7.1), and their end. */
function exchangesOf(payload: Buffer): { readonly names: readonly string[]; readonly end: number } {
  const list = new WireReader(payload.subarray(COOKIE_END)).string() ?? Buffer.alloc(0)
  return { names: list.toString('latin1').split(','), end: COOKIE_END + 4 + list.length }
}

/** Lets a connection agree on {@link HYBRID} when its offer contains it. Call again after each exchange, which replaces the reader. */
export function takeHybrid(protocol: Protocol, others: readonly string[]): void {
  const reader = protocol._packetRW.read
  const read = reader.read.bind(reader)
  reader.read = (data) => {
    const payload = read(data)
    if (payload[0] !== KEXINIT) return payload
    const { names, end } = exchangesOf(payload)
    if (names.find((name) => name === HYBRID || others.includes(name)) !== HYBRID) return payload
    const replaced = names.map((name) => (name === HYBRID ? STAND_IN : name)).join()
    interceptOnce(protocol, payload)
    return Buffer.concat([payload.subarray(0, COOKIE_END), string(replaced), payload.subarray(end)])
  }
}

/** Gives the exchange that ssh2 creates next the original KEXINIT and the numbers of the hybrid. */
function interceptOnce(protocol: Protocol, payload: Buffer): void {
  let current = protocol._kex
  Object.defineProperty(protocol, '_kex', {
    configurable: true,
    get: () => current,
    set(exchange: KeyExchange) {
      current = exchange
      Object.defineProperty(protocol, '_kex', { configurable: true, writable: true, value: exchange })
      makeHybrid(exchange, payload)
    },
  })
}

function makeHybrid(exchange: KeyExchange, payload: Buffer): void {
  exchange._remoteKexinit = payload
  let reply: Buffer = Buffer.alloc(0)
  exchange.convertPublicKey = (key) => key
  exchange.computeSecret = (fromClient) => {
    try {
      const answer = answerHybrid(fromClient)
      reply = answer.reply
      return answer.secret
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
  exchange.getPublicKey = () => reply
}
