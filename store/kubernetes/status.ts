import { z } from 'zod'
import type { Kind } from '../../crds/kind.ts'
import { StoreCode, StoreError } from '../port.ts'
import type { ApiResponse, ApiRequest } from './client.ts'

/** Kubernetes meta/v1 Status; only the fields that are read. */
const Status = z.object({
  kind: z.literal('Status'),
  code: z.int().optional(),
  reason: z.string().default(''),
  message: z.string().default(''),
  details: z
    .object({
      causes: z
        .array(z.object({ reason: z.string().default(''), message: z.string().default(''), field: z.string().default('') }))
        .default([]),
    })
    .default({ causes: [] }),
})
type Status = z.output<typeof Status>

const BY_REASON: Readonly<Record<string, StoreCode>> = {
  NotFound: StoreCode.notFound,
  AlreadyExists: StoreCode.alreadyExists,
  Conflict: StoreCode.conflict,
  Invalid: StoreCode.invalid,
  BadRequest: StoreCode.invalid,
  RequestEntityTooLarge: StoreCode.invalid,
  Forbidden: StoreCode.forbidden,
  Gone: StoreCode.gone,
  Expired: StoreCode.gone,
}

/** Codes for a Status without a reason. */
const BY_STATUS: Readonly<Record<number, StoreCode>> = {
  400: StoreCode.invalid,
  403: StoreCode.forbidden,
  404: StoreCode.notFound,
  409: StoreCode.conflict,
  410: StoreCode.gone,
  413: StoreCode.invalid,
  422: StoreCode.invalid,
}

const hasCause = ({ details }: Status, reason: string): boolean => details.causes.some((cause) => cause.reason === reason)

function codeOf(status: Status, answered: number): StoreCode {
  // The store was restored to an older state: only a new list helps.
  if (hasCause(status, 'ResourceVersionTooLarge')) return StoreCode.gone
  return BY_REASON[status.reason] ?? BY_STATUS[status.code ?? answered] ?? StoreCode.unavailable
}

/** Failed request and its object. */
export interface Subject {
  readonly request: Pick<ApiRequest, 'method' | 'path' | 'query'>
  readonly kind: Pick<Kind, 'kind' | 'plural' | 'custom'>
  readonly name?: string | undefined
  readonly namespace?: string | undefined
}

const VERBS = { POST: 'create', PUT: 'update', PATCH: 'patch' } as const satisfies Partial<Record<ApiRequest['method'], string>>

function verbOf({ request: { method, query }, name }: Subject): string {
  if (method === 'GET') return query?.watch === 'true' ? 'watch' : name === undefined ? 'list' : 'get'
  if (method === 'DELETE') return name === undefined ? 'deletecollection' : 'delete'
  return VERBS[method]
}

/** Returns the permission that a request needs, in the words of RBAC: `patch sharedinstances/status in namespace acme--prod`. */
function permissionOf(subject: Subject): string {
  const { kind, namespace, name, request } = subject
  const [, subresource] = new RegExp(`/${kind.plural}/[^/]+/(\\w+)$`).exec(request.path) ?? []
  const object = `${verbOf(subject)} ${kind.plural}${subresource === undefined ? '' : `/${subresource}`}`
  const which = name === undefined || request.method === 'POST' ? '' : ` ${name}`
  return `${object}${which}${namespace === undefined ? '' : ` in namespace ${namespace}`}`
}

type Sentence = (status: Status, subject: Subject) => string

const SENTENCES: Readonly<Record<StoreCode, Sentence>> = {
  not_found: (_status, { kind, name = '' }) => `${kind.kind} ${name} or its namespace does not exist`,
  already_exists: (_status, { kind, name = '' }) => `${kind.kind} ${name} exists already`,
  conflict: (_status, { name = '' }) => `${name} has changed: read it again`,
  gone: () => 'the revision is too old or not of this store: list again',
  forbidden: (status, subject) =>
    hasCause(status, 'NamespaceTerminating')
      ? `namespace ${subject.namespace ?? ''} is being deleted`
      : `the cluster does not allow Mooring to ${permissionOf(subject)}; its administrator can say why`,
  invalid: (_status, { kind }) => `${kind.kind} is invalid`,
  unavailable: () => 'the API server failed to process the request',
}

/** Fields of Mooring's schema. Other fields, such as those from a webhook of the cluster, are not reported to callers. */
const OURS = /^spec(\.|$)/

/**
 * Converts a failed response into a StoreError, by its reason and status only. The message is Mooring's, because it may reach a tenant. The
 * text of the API server (with names of webhooks, quotas and service accounts) is in the cause, for the log.
 */
export function storeErrorOf({ status: answered, body }: ApiResponse, subject: Subject): StoreError {
  const { data: status } = Status.safeParse(body)
  // Every error of an API server has a Status. A 404 without one means that the server does not serve the kind.
  if (!status) {
    const hint = answered === 404 ? `; are the CustomResourceDefinitions of ${subject.kind.plural} installed?` : ''
    return new StoreError('unavailable', `the API server answered ${answered} without a reason${hint}`)
  }
  const code = codeOf(status, answered)
  const { custom } = subject.kind
  const fields = status.details.causes.filter(({ field }) => custom && OURS.test(field))
  // For Kubernetes' kinds no text is kept: the API server may quote the request, which may be a Secret.
  const cause = code === 'invalid' && !custom ? undefined : new Error(status.message)
  return new StoreError(code, SENTENCES[code](status, subject), {
    ...(cause && { cause }),
    fields: code === 'invalid' ? fields.map(({ field, message }) => ({ field, message })) : [],
  })
}
