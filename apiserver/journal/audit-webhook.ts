import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import type { JournalWriter } from '../../journal/port.ts'
import { bindError, closerOf } from '../../process/listeners.ts'
import { keepEntry } from '../journal/audit.ts'
import { AdmissionReview, allowed, entriesOf } from './review.ts'

export interface AuditListenerDeps {
  readonly host: string
  /** Port to listen on; 0 selects a free one. */
  readonly port: number
  /** Returns the current key and certificate chain, in PEM. */
  readonly certificate: () => { readonly key: string; readonly certificate: string }
  /** Returns the secret path of the webhook; any caller that knows it can write audit entries. */
  readonly path: () => string
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly now: () => Date
  readonly digest: () => ValueDigest
}

export interface AuditListener extends AsyncDisposable {
  readonly port: number
  /** Reads the certificate again and uses it for new connections. */
  renewCertificate(): void
}

/** Maximum body size: the old and the new object, each at most as large as etcd accepts. */
const BODY_BYTES = 8 * 1024 * 1024
/** Maximum wait for the journal. Shorter than the webhook timeout in charts/mooring; a queued entry is written later. */
const JOURNAL_WAIT_MS = 1_000

/**
 * Starts the admission webhook that records writes made without the REST API. It allows every write.
 * @throws MooringError `port_in_use`, `port_forbidden`, `address_unavailable`
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
      log.warn({ err: error }, 'a write was not recorded in the audit log')
      if (!res.headersSent) res.writeHead(400)
      res.end()
    })
  })
  const close = closerOf(server)
  await new Promise<void>((resolve, reject) => {
    const about = { address: host, port, flag: '--audit-port' }
    // The handler stays registered: a failed accept is an `error` event of the server and would otherwise end the process.
    server.on('error', (error: NodeJS.ErrnoException) => reject(bindError(error, about)))
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    renewCertificate: () => server.setSecureContext(pair()),
    [Symbol.asyncDispose]: () => close(JOURNAL_WAIT_MS),
  }
}

async function answer(deps: AuditListenerDeps, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'POST' || new URL(req.url ?? '/', 'https://audit').pathname !== deps.path()) {
    res.writeHead(404).end()
    return
  }
  const { request } = AdmissionReview.parse(JSON.parse(await bodyOf(req)))
  const entries = entriesOf(request, { at: deps.now().getTime(), digest: deps.digest() })
  await Promise.all(entries.map((entry) => keepEntry({ ...deps, waitMs: JOURNAL_WAIT_MS }, entry, { kind: entry.resource.kind })))
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(allowed(request.uid)))
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_BYTES) throw new RangeError('the AdmissionReview is larger than 8 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
