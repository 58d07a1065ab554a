import kex, { type KexInit } from 'ssh2/lib/protocol/kex.js'
import type { HostKey } from '../host-keys.ts'
import { ciphersFor, type ClientOffer, KEY_EXCHANGES, MACS } from './algorithms.ts'
import { HYBRID } from './hybrid-kex.ts'

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
