import { hkdfSync } from 'node:crypto'
import type { MeshIdentity } from './mesh-files.ts'

/** What node:tls takes as `ticketKeys`. */
const TICKET_KEY_BYTES = 48

/** Keys that TLS session tickets are sealed with, alike at all edges that started with the same mesh certificate: a visitor who comes to another one resumes (RFC 5869). */
export function ticketKeysOf({ key }: MeshIdentity): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'mooring edge: TLS session tickets', TICKET_KEY_BYTES))
}
