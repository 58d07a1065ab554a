import { z } from 'zod'
import type { Kind } from '../../crds/kind.ts'
import { StoreCode, StoreError } from '../errors.ts'
import type { ApiAnswer } from './client.ts'

/** meta/v1 Status, as far as it decides anything. */
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

/** Where a Status has no reason. */
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
  // Of a store that was put back to an older state: only a new list helps.
  if (hasCause(status, 'ResourceVersionTooLarge')) return StoreCode.gone
  return BY_REASON[status.reason] ?? BY_STATUS[status.code ?? answered] ?? StoreCode.unavailable
}

/** What a refusal was about. */
export interface Subject {
  readonly kind: Pick<Kind, 'kind' | 'plural' | 'custom'>
  readonly name?: string | undefined
  readonly namespace?: string | undefined
}

type Sentence = (status: Status, subject: Subject) => string

const SENTENCES: Readonly<Record<StoreCode, Sentence>> = {
  not_found: (_status, { kind, name = '' }) => `${kind.kind} ${name} or its namespace does not exist`,
  already_exists: (_status, { kind, name = '' }) => `${kind.kind} ${name} exists already`,
  conflict: (_status, { name = '' }) => `${name} has changed: read it again`,
  gone: () => 'the revision is too old or not of this store: list again',
  forbidden: (status, { namespace = '' }) =>
    hasCause(status, 'NamespaceTerminating')
      ? `namespace ${namespace} is being deleted`
      : 'the cluster does not allow this; who runs it can say why',
  invalid: (_status, { kind }) => `${kind.kind} is invalid`,
  unavailable: () => 'the API server could not do this',
}

/** Fields of our own schema. Of all others, such as those that a webhook of the cluster's owner names, callers are told nothing. */
const OURS = /^spec(\.|$)/

/**
 * The StoreError that an answer other than success stands for, by its reason and status alone. Its message is ours, for it may reach a
 * tenant; what the API server says (names of webhooks, quotas, service accounts) is in the cause, for the log.
 */
export function storeErrorOf({ status: answered, body }: ApiAnswer, subject: Subject): StoreError {
  const { data: status } = Status.safeParse(body)
  // Every refusal of an API server is a Status. A bare 404 means that it does not serve the kind at all.
  if (!status) {
    const hint = answered === 404 ? `; are the CustomResourceDefinitions of ${subject.kind.plural} there?` : ''
    return new StoreError('unavailable', `the API server answered ${answered} and no reason${hint}`)
  }
  const code = codeOf(status, answered)
  const { custom } = subject.kind
  const fields = status.details.causes.filter(({ field }) => custom && OURS.test(field))
  // Of Kubernetes' own kinds a Secret is one, and the API server may repeat what was sent.
  const cause = code === 'invalid' && !custom ? undefined : new Error(status.message)
  return new StoreError(code, SENTENCES[code](status, subject), {
    ...(cause && { cause }),
    fields: code === 'invalid' ? fields.map(({ field, message }) => ({ field, message })) : [],
  })
}
