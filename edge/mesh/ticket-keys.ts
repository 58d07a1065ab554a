import { hkdfSync } from 'node:crypto'
import type { MeshIdentity } from './mesh-files.ts'

/** Size of `ticketKeys` of node:tls. */
const TICKET_KEY_BYTES = 48

/**
 * Derives the keys of TLS session tickets (RFC 5869). All edges that started with the same mesh certificate have the same keys, so a
 * visitor who moves to another edge resumes its TLS session.
 */
export function ticketKeysOf({ key }: MeshIdentity): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'mooring edge: TLS session tickets', TICKET_KEY_BYTES))
}
