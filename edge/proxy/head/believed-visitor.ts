import { isIP } from 'node:net'
import { type AddressList, plainAddress } from '../../../crds/formats/address-list.ts'
import { type Fields, valueOf } from './fields.ts'

/** Address and scheme of a visitor, who may be behind balancers. */
export interface BelievedVisitor {
  readonly sourceIp: string
  readonly scheme: 'http' | 'https'
}

/** Returns the visitor that a trusted balancer reports: the last address in X-Forwarded-For that is not a trusted balancer itself. */
export function believedVisitor(fields: Fields, peer: string, scheme: 'http' | 'https', trusted: AddressList): BelievedVisitor {
  const said = valueOf(fields, 'x-forwarded-proto')?.toLowerCase()
  return {
    sourceIp: lastOutside(valueOf(fields, 'x-forwarded-for'), peer, trusted),
    scheme: said === 'http' || said === 'https' ? said : scheme,
  }
}

function lastOutside(chain: string | undefined, peer: string, trusted: AddressList): string {
  let nearest = peer
  for (const hop of (chain ?? '').split(',').reverse()) {
    const address = plainAddress(hop.trim())
    if (isIP(address) === 0) return nearest
    nearest = address
    if (!trusted.allows(address)) return nearest
  }
  return nearest
}
