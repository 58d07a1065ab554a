import kex, { type KexInit } from 'ssh2/lib/protocol/kex.js'
import type { HostKey } from '../host-keys.ts'
import { ciphersFor, type ClientOffer, KEY_EXCHANGES, MACS } from './algorithms.ts'
import { HYBRID } from './hybrid-kex.ts'

/** Keys under each name that a client may ask for (RFC 8332 has two for RSA). */
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

/** What a client is offered (RFC 4253, section 7.1). Offers are the same for many clients: each is built once. */
export function offerFor(ring: HostKeyRing, client: ClientOffer | undefined): KexInit {
  const serverHostKey = Object.keys(ring)
  const cipher = [...ciphersFor(client)]
  const name = [...serverHostKey, ...cipher].join()
  const known = offers.get(name)
  if (known) return known
  const direction = { cipher, mac: [...MACS], compress: ['none'], lang: [] }
  const exchanges = [HYBRID, ...KEY_EXCHANGES, 'kex-strict-s-v00@openssh.com']
  const offer = new kex.KexInit({ kex: exchanges, serverHostKey, cs: direction, sc: direction })
  // It is announced, and ssh2 must not choose it itself.
  offer.lists.kex.array = exchanges.filter((exchange) => exchange !== HYBRID)
  offers.set(name, offer)
  return offer
}
