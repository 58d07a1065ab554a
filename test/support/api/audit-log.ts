import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { inject } from 'vitest'
import { z } from 'zod'

/** One write that the Kubernetes API server carried out: what reached etcd, or would have. */
export interface ApiWrite {
  readonly user: string
  /** Whose token it came with, where it was a service account's. */
  readonly pod: string | undefined
  readonly verb: string
  /** `sharedinstances`, `sharedinstances/status` */
  readonly resource: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly code: number
  /** When the request came in and when it was answered, in milliseconds since 1970. */
  readonly from: number
  readonly to: number
}

export interface AuditLog {
  /** Where the log ends now. */
  mark(): Promise<AuditMark>
  /** Writes answered since, in order of their answers. The log is written before an answer goes out. */
  writesSince(mark: AuditMark): Promise<readonly ApiWrite[]>
}

export interface AuditMark {
  readonly bytes: number
}

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])
/** Questions and connections that are asked for with a POST, and stored nowhere. */
const NOT_STORED =
  /^((self|local)?subject(access|rules)?reviews|selfsubjectaccessreviews|tokenreviews|serviceaccounts\/token|pods\/(exec|attach|portforward|log)|bindings)$/

/** "Bound service account tokens": of which pod the token is. */
const POD = 'authentication.kubernetes.io/pod-name'

const Line = z.object({
  stage: z.string(),
  verb: z.string(),
  // Empty for whom the API server does not know, as an edge whose service account somebody has deleted.
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

/** The audit log of the cluster that the suite runs on. @throws Error where the cluster does not show it */
export function openAuditLog(file: string | undefined = inject('cluster').auditLog): AuditLog {
  if (file === undefined) throw new Error('the audit log of this cluster is not to be had: run the suite without KUBECONFIG')
  return {
    mark: async () => ({ bytes: (await stat(file)).size }),
    async writesSince({ bytes }) {
      let since = ''
      const text: AsyncIterable<string> = createReadStream(file, { start: bytes, encoding: 'utf8' })
      for await (const chunk of text) since += chunk
      // After the last line's end there may be the beginning of one that is being written.
      const lines = since.split('\n').slice(0, -1)
      return lines.flatMap((line) => writeOf(line) ?? [])
    },
  }
}

/** What a line of the log says, when it is of a write that was answered. */
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

/** How many of these had to wait for each other: the longest chain in which each came in after the one before was answered. */
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
