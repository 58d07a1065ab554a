import { WireReader } from '../wire-format.ts'
import kex, { type KexInit } from 'ssh2/lib/protocol/kex.js'
import type { HostKey } from '../host-keys.ts'
import { HYBRID } from './hybrid-kex.ts'

/**
 * Key exchanges that are offered. No group-exchange: ssh2 has it for clients only. No compression: it is synchronous and costs 7/8 of
 * the throughput. No SHA-1, no CBC. No group18: it costs 15 ms of the edge's time even for a client that computes nothing
 * (CVE-2002-20001), and no client has only that one.
 */
export const KEY_EXCHANGES = [
  ...['curve25519-sha256', 'curve25519-sha256@libssh.org'],
  ...['ecdh-sha2-nistp256', 'ecdh-sha2-nistp384', 'ecdh-sha2-nistp521'],
  ...['diffie-hellman-group16-sha512', 'diffie-hellman-group14-sha256'],
] as const
export const MACS = ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'] as const
/** Signature algorithms for logins, as the edge announces them (RFC 8308, section 3.1). */
export const SIGNATURES = [
  ...['ssh-ed25519', 'sk-ssh-ed25519@openssh.com', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'],
  ...['sk-ecdsa-sha2-nistp256@openssh.com', 'rsa-sha2-512', 'rsa-sha2-256'],
] as const

const FAST_CIPHERS = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const
const OTHER_CIPHERS = ['aes128-ctr', 'aes256-ctr', 'aes192-ctr', 'chacha20-poly1305@openssh.com'] as const

/**
 * Returns the ciphers for a client. The client's order decides (RFC 4253, section 7.1), and most clients prefer a cipher that costs
 * four times as much: a client with AES-GCM is offered nothing else.
 */
export function ciphersFor(client: ClientOffer | undefined): readonly string[] {
  const all = [...FAST_CIPHERS, ...OTHER_CIPHERS]
  if (client === undefined) return all
  const common = FAST_CIPHERS.filter((name) => client.toServer.includes(name) && client.toClient.includes(name))
  return common.length > 0 ? common : all
}

/** Names of ciphers in a client's KEXINIT. */
export interface ClientOffer {
  readonly toServer: readonly string[]
  readonly toClient: readonly string[]
}

/** `more`: the KEXINIT is incomplete. `unreadable`: ssh2 will reject it. */
export type Peek = 'more' | 'unreadable' | ClientOffer

const MAX_IDENT_BYTES = 8192
/** Maximum packet size of ssh2, with its length and tag. */
export const MAX_PACKET_BYTES = 35_000
const HEADER_BYTES = 5
const COOKIE_BYTES = 16
const KEXINIT = 20
const NEWLINE = 10

/** Reads the first bytes of a client: its identification line and then its KEXINIT (RFC 4253, sections 4.2 and 7.1). */
export function peekOffer(data: Buffer): Peek {
  const newline = data.indexOf(NEWLINE)
  if (newline === -1) return data.length > MAX_IDENT_BYTES ? 'unreadable' : 'more'
  const packet = data.subarray(newline + 1)
  if (packet.length < HEADER_BYTES) return 'more'
  const length = packet.readUInt32BE(0)
  if (length > MAX_PACKET_BYTES) return 'unreadable'
  return packet.length < 4 + length ? 'more' : offerOf(packet.subarray(HEADER_BYTES, 4 + length))
}

/** Reads the offer from the payload of a KEXINIT. */
function offerOf(payload: Buffer): Peek {
  if (payload[0] !== KEXINIT) return 'unreadable'
  const reader = new WireReader(payload.subarray(1 + COOKIE_BYTES))
  reader.names()
  reader.names()
  const toServer = reader.names()
  const toClient = reader.names()
  return toServer && toClient ? { toServer, toClient } : 'unreadable'
}

/** Host keys by each name that a client may request (RFC 8332 has two for RSA). */
export type HostKeyRing = Readonly<Record<string, object>>

export function hostKeyRing(keys: readonly HostKey[]): HostKeyRing {
  const entries = keys.flatMap((key) => {
    const names = key.type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [key.type]
    const ours = { type: key.type, getPublicSSH: () => key.blob, sign: (data: Buffer, hash?: string) => key.sign(data, hash) }
    return names.map((name) => [name, ours] as const)
  })
  return Object.fromEntries(entries)
}

const offers = new Map<string, KexInit>()

/** Returns the offer for a client (RFC 4253, section 7.1). Many clients share an offer: each is built once. */
export function offerFor(ring: HostKeyRing, client: ClientOffer | undefined): KexInit {
  const serverHostKey = Object.keys(ring)
  const cipher = [...ciphersFor(client)]
  const name = [...serverHostKey, ...cipher].join()
  const known = offers.get(name)
  if (known) return known
  const direction = { cipher, mac: [...MACS], compress: ['none'], lang: [] }
  const exchanges = [HYBRID, ...KEY_EXCHANGES, 'kex-strict-s-v00@openssh.com']
  const offer = new kex.KexInit({ kex: exchanges, serverHostKey, cs: direction, sc: direction })
  // The hybrid is announced, but ssh2 must not select it itself.
  offer.lists.kex.array = exchanges.filter((exchange) => exchange !== HYBRID)
  offers.set(name, offer)
  return offer
}
