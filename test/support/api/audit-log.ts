import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { inject } from 'vitest'
import { z } from 'zod'

/** Write that the Kubernetes API server carried out. */
export interface ApiWrite {
  readonly user: string
  /** Name of the pod whose service account token was used, if any. */
  readonly pod: string | undefined
  readonly verb: string
  /** Resource of the write: `sharedinstances`, `sharedinstances/status`. */
  readonly resource: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly code: number
  /** Times of the request and of its response, in milliseconds since 1970. */
  readonly from: number
  readonly to: number
}

export interface AuditLog {
  /** Returns the current end of the log. */
  mark(): Promise<AuditMark>
  /** Returns the writes answered since a mark, in the order of their responses. The log is written before a response is sent. */
  writesSince(mark: AuditMark): Promise<readonly ApiWrite[]>
}

export interface AuditMark {
  readonly bytes: number
}

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])
/** Resources of requests and connections that are made by POST, and stored nowhere. */
const NOT_STORED =
  /^((self|local)?subject(access|rules)?reviews|selfsubjectaccessreviews|tokenreviews|serviceaccounts\/token|pods\/(exec|attach|portforward|log)|bindings)$/

/** Key of the pod that a token is bound to (Kubernetes documentation, "Bound service account tokens"). */
const POD = 'authentication.kubernetes.io/pod-name'

const Line = z.object({
  stage: z.string(),
  verb: z.string(),
  // Empty for a caller that the API server does not know, such as an edge whose service account is deleted.
  user: z.object({ username: z.string().default(''), extra: z.record(z.string(), z.array(z.string())).default({}) }),
  objectRef: z
    .object({
      resource: z.string().default(''),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
  responseStatus: z.object({ code: z.int().default(0) }).optional(),
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
})

/** Opens the audit log of the cluster under test. @throws Error when the cluster does not offer it */
export function openAuditLog(file: string | undefined = inject('cluster').auditLog): AuditLog {
  if (file === undefined) throw new Error('the audit log of this cluster is not available: run the suite without KUBECONFIG')
  return {
    mark: async () => ({ bytes: (await stat(file)).size }),
    async writesSince({ bytes }) {
      let since = ''
      const text: AsyncIterable<string> = createReadStream(file, { start: bytes, encoding: 'utf8' })
      for await (const chunk of text) since += chunk
      // The last line may be incomplete while it is written.
      const lines = since.split('\n').slice(0, -1)
      return lines.flatMap((line) => writeOf(line) ?? [])
    },
  }
}

/** Parses a line of the log. Returns undefined unless it is an answered write. */
export function writeOf(line: string): ApiWrite | undefined {
  const event = Line.parse(JSON.parse(line))
  if (event.stage !== 'ResponseComplete' || !WRITES.has(event.verb) || !event.objectRef) return undefined
  const { resource: kind, subresource, namespace, name } = event.objectRef
  const resource = subresource === undefined ? kind : `${kind}/${subresource}`
  if (NOT_STORED.test(resource)) return undefined
  return {
    ...{ user: event.user.username, verb: event.verb, resource, namespace, name },
    pod: event.user.extra[POD]?.[0],
    code: event.responseStatus?.code ?? 0,
    from: Date.parse(event.requestReceivedTimestamp),
    to: Date.parse(event.stageTimestamp),
  }
}

/** Returns the length of the longest chain of writes in which each request was received after the previous one was answered. */
export function sequentialWrites(writes: readonly ApiWrite[]): number {
  let count = 0
  let until = Number.NEGATIVE_INFINITY
  for (const { from, to } of writes.toSorted((a, b) => a.to - b.to)) {
    if (from < until) continue
    count++
    until = to
  }
  return count
}
