import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import type { JournalWriter } from '../../journal/port.ts'
import { bindError, closerOf } from '../../process/listeners.ts'
import { keepEntry } from '../journal/keep-entry.ts'
import { entriesOf } from './entry.ts'
import { AdmissionReview, allowed } from './review.ts'

export interface AuditListenerDeps {
  readonly host: string
  /** 0 for any free one. */
  readonly port: number
  /** PEM of key and certificate chain as they are now. */
  readonly certificate: () => { readonly key: string; readonly certificate: string }
  /** The one path that is answered: who knows it may write entries. A secret. */
  readonly path: () => string
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly now: () => Date
  readonly digest: () => ValueDigest
}

export interface AuditListener extends AsyncDisposable {
  readonly port: number
  /** Asks for the certificate anew; connections from now on get it. */
  renewCertificate(): void
}

/** An object may be as large as etcd takes it, and comes twice. */
const BODY_BYTES = 8 * 1024 * 1024
/** Less than the API server waits (charts/mooring): the entry is on its way then. */
const KEPT_MS = 1_000

/**
 * Takes note of what is written by other ways than REST: the API server of the cluster asks about each write, and is always told that it
 * may go on (Kubernetes, "Dynamic Admission Control"). @throws MooringError `port_in_use`, `port_forbidden`, `address_unavailable`
 */
export async function startAuditListener(deps: AuditListenerDeps): Promise<AuditListener> {
  const { host, port, certificate, log } = deps
  const pair = () => {
    const { key, certificate: cert } = certificate()
    return { key, cert, minVersion: 'TLSv1.2' } as const
  }
  const timeouts = { handshakeTimeout: 5_000, headersTimeout: 5_000, requestTimeout: 10_000 }
  const server = createServer({ ...pair(), ...timeouts }, (req, res) => {
    answer(deps, req, res).catch((error: unknown) => {
      log.warn({ err: error }, 'a write was not noted for the audit log')
      if (!res.headersSent) res.writeHead(400)
      res.end()
    })
  })
  const close = closerOf(server)
  await new Promise<void>((resolve, reject) => {
    const about = { address: host, port, flag: '--audit-port' }
    // Stays on: a connection that cannot be taken is an error of the server, and would end the process.
    server.on('error', (error: NodeJS.ErrnoException) => reject(bindError(error, about)))
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    renewCertificate: () => server.setSecureContext(pair()),
    [Symbol.asyncDispose]: () => close(KEPT_MS),
  }
}

async function answer(deps: AuditListenerDeps, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'POST' || new URL(req.url ?? '/', 'https://audit').pathname !== deps.path()) {
    res.writeHead(404).end()
    return
  }
  const { request } = AdmissionReview.parse(JSON.parse(await bodyOf(req)))
  const entries = entriesOf(request, { at: deps.now().getTime(), digest: deps.digest() })
  await Promise.all(entries.map((entry) => keepEntry({ ...deps, waitMs: KEPT_MS }, entry, { kind: entry.resource.kind })))
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(allowed(request.uid)))
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_BYTES) throw new RangeError('the review is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
