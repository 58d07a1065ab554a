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
    hasCause(status, 'NamespaceTerminating') ? `namespace ${namespace} is being deleted` : status.message,
  // Of Kubernetes' own kinds a Secret is one, and the API server may repeat what was sent.
  invalid: ({ message }, { kind }) => (kind.custom ? `${kind.kind} is invalid: ${message}` : `${kind.kind} is invalid`),
  unavailable: ({ message }) => `the API server failed: ${message}`,
}

/** The StoreError that an answer other than success stands for, by its reason and status alone. */
export function storeErrorOf({ status: answered, body }: ApiAnswer, subject: Subject): StoreError {
  const { data: status } = Status.safeParse(body)
  // Every refusal of an API server is a Status. A bare 404 means that it does not serve the kind at all.
  if (!status) {
    const hint = answered === 404 ? `; are the CustomResourceDefinitions of ${subject.kind.plural} there?` : ''
    return new StoreError('unavailable', `the API server answered ${answered} and no reason${hint}`)
  }
  const code = codeOf(status, answered)
  const fields = status.details.causes
    .filter(({ field }) => field !== '')
    .map(({ field, reason, message }) => ({ field, message: subject.kind.custom ? message : reason }))
  return new StoreError(code, SENTENCES[code](status, subject), { fields: code === 'invalid' ? fields : [] })
}
