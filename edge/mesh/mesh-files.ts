import { hkdfSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { type PolledFiles, pollFiles } from '../../process/polled-files.ts'
import { MooringError } from '../../shared/errors.ts'

/** TLS settings of links. Both ends are edges, so the cheaper cipher of TLS 1.3 is enough (RFC 8446, section 9.1). */
export const MESH_TLS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const

/** Identity of an edge: certificate, key and the authority that signs only for edges of this endpoint, as PEM. */
export interface MeshIdentity {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Current content of the mounted Secret. Disposing stops the polling. */
export type MeshFiles = PolledFiles<MeshIdentity>

interface Deps {
  readonly directory: string
  readonly log: Pick<Logger, 'info' | 'error'>
  readonly everyMs?: number
}

/**
 * Reads `ca.crt`, `tls.crt` and `tls.key`, and polls for changes from then on.
 * @throws MooringError `files_unreadable`
 */
export function openMeshFiles({ directory, log, everyMs }: Deps): Promise<MeshFiles> {
  const says = {
    changed: 'the certificate for the other edges has changed',
    failed: 'the certificate for the other edges is not readable; the previous one stays in use',
  }
  return pollFiles({ read: () => read(directory), says, log, everyMs })
}

async function read(directory: string): Promise<MeshIdentity> {
  try {
    const [ca, cert, key] = await Promise.all(
      ['ca.crt', 'tls.crt', 'tls.key'].map((name) => readFile(join(directory, name), 'utf8')),
    )
    const identity = { ca: ca ?? '', cert: cert ?? '', key: key ?? '' }
    // Files read between two writes may not match each other.
    createSecureContext(identity)
    return identity
  } catch (cause) {
    throw new MooringError('files_unreadable', `the certificate for the other edges in ${directory} is not usable`, { cause })
  }
}

/** Size of `ticketKeys` of node:tls. */
const TICKET_KEY_BYTES = 48

/**
 * Derives the keys of TLS session tickets (RFC 5869). All edges that started with the same mesh certificate have the same keys, so a
 * visitor who moves to another edge resumes its TLS session.
 */
export function ticketKeysOf({ key }: MeshIdentity): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'mooring edge: TLS session tickets', TICKET_KEY_BYTES))
}
