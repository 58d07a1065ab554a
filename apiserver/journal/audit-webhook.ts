import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import { z } from 'zod'
import { type ValueDigest, auditChanges, auditedObject, auditScopes } from '../../journal/audit-entry.ts'
import type { JournalWriter, AuditRecord } from '../../journal/port.ts'
import { bindError, closerOf } from '../../process/listeners.ts'
import { keepEntry } from './audit.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'

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

const ReviewedObject = z.looseObject({
  kind: z.string().max(63),
  metadata: z.looseObject({
    uid: z.string().max(128),
    name: z.string().max(253),
    namespace: z.string().max(63).optional(),
    generation: z.int().min(1).optional(),
    ownerReferences: z.array(z.looseObject({ kind: z.string(), uid: z.string() })).optional(),
  }),
  spec: z.record(z.string(), z.unknown()).optional(),
  status: z.record(z.string(), z.unknown()).optional(),
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }).optional(),
  subjects: z.array(z.looseObject({ name: z.string() })).optional(),
})
const Reviewed = ReviewedObject.nullish().transform((object) => object ?? undefined)
export type Reviewed = z.output<typeof Reviewed>

/** AdmissionReview v1 request of the Kubernetes API server: the fields that an audit entry needs. */
export const AdmissionReview = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().max(128),
    subResource: z.string().optional(),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    userInfo: z.looseObject({ username: z.string().max(1024) }),
    object: Reviewed,
    oldObject: Reviewed,
    dryRun: z.boolean().nullish(),
  }),
})
type AdmissionRequest = z.output<typeof AdmissionReview>['request']

/** AdmissionReview response that allows the write. */
export const allowed = (uid: string) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, allowed: true },
})

const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: undefined } as const

const SERVICE_ACCOUNT = 'system:serviceaccount:'
/** Service accounts of Mooring itself. The REST API records its own writes with the caller; the operator only carries out recorded changes. */
const MOORING_ACCOUNTS = ['mooring-apiserver', 'mooring-operator'].map((name) => `${SERVICE_ACCOUNT}${SYSTEM_NAMESPACE}:${name}`)

/**
 * Returns the audit entries of a write made without the REST API (docs/api.md, "Audit log"), one for each scope in which the resource is listed.
 * A write that leaves the desired state unchanged (status, metadata alone, dry run) has no entry.
 */
export function entriesOf(
  request: AdmissionRequest,
  { at, digest }: { readonly at: number; readonly digest: ValueDigest },
): readonly AuditRecord[] {
  const action = ACTIONS[request.operation]
  const { username } = request.userInfo
  const object = request.object ?? request.oldObject
  const audited = object && auditedObject(object)
  if (!action || !audited || leavesDesiredState(request)) return []
  return auditScopes(object).map((namespace) => ({
    id: randomUUIDv7(),
    at,
    namespace,
    actor: { name: username, kind: username.startsWith(SERVICE_ACCOUNT) ? 'serviceAccount' : 'user' },
    via: 'kubectl',
    action,
    resource: audited.resource,
    // Kubernetes sets the generation before it calls the webhook.
    generation: request.object?.metadata.generation ?? null,
    changes: auditChanges(auditedOf(request.oldObject), auditedOf(request.object), digest),
    sourceIp: null,
    requestId: null,
  }))
}

const auditedOf = (object: Reviewed) => object && auditedObject(object)

/** Whether the write leaves the desired state unchanged or another component records it. */
function leavesDesiredState({ operation, subResource, dryRun, object, oldObject, userInfo }: AdmissionRequest): boolean {
  if (MOORING_ACCOUNTS.includes(userInfo.username)) return true
  if (dryRun === true || (subResource ?? '') !== '') return true
  return operation === 'UPDATE' && isDeepStrictEqual(desiredOf(object), desiredOf(oldObject))
}

/** A RoleBinding has no spec. */
const desiredOf = (object: Reviewed) => object && [object.spec, object.subjects]
