import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { MooringError } from '../../shared/errors.ts'
import { hkdfSync } from 'node:crypto'

/** Poll interval. The kubelet takes up to a minute to update a mounted Secret, so this delay does not matter. */
const POLL_MS = 10_000

/** TLS settings of links. Both ends are edges, so the cheaper cipher of TLS 1.3 is enough (RFC 8446, section 9.1). */
export const MESH_TLS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const

/** Identity of an edge: certificate, key and the authority that signs only for edges of this endpoint, as PEM. */
export interface MeshIdentity {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Current content of the mounted Secret. Dispose to stop polling. */
export interface MeshFiles extends Disposable {
  current(): MeshIdentity
  /** Calls `handler` after each change that could be read; other changes are retried at the next poll. */
  onChange(handler: (identity: MeshIdentity) => void): void
  /** Reads the files now; the timer calls this. */
  poll(): Promise<void>
}

interface Deps {
  readonly directory: string
  readonly log: Pick<Logger, 'info' | 'error'>
  readonly everyMs?: number
}

/**
 * Reads `ca.crt`, `tls.crt` and `tls.key`, and polls for changes from then on.
 * @throws MooringError `files_unreadable`
 */
export async function openMeshFiles({ directory, log, everyMs = POLL_MS }: Deps): Promise<MeshFiles> {
  const handlers: ((identity: MeshIdentity) => void)[] = []
  let known = await read(directory)

  async function poll(): Promise<void> {
    try {
      const now = await read(directory)
      if (JSON.stringify(now) === JSON.stringify(known)) return
      known = now
      log.info('the certificate for the other edges has changed')
      for (const handler of handlers) handler(now)
    } catch (error) {
      log.error({ err: error }, 'the certificate for the other edges is not readable; the previous one stays in use')
    }
  }

  const timer = setInterval(() => void poll(), everyMs).unref()
  return {
    current: () => known,
    onChange: (handler) => void handlers.push(handler),
    poll,
    [Symbol.dispose]: () => clearInterval(timer),
  }
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
