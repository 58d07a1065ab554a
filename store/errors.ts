import { type FieldError, MooringError } from '../shared/errors.ts'

/** Codes of {@link StoreError}. Both stores throw only these errors; branch on `code`. */
export const StoreCode = {
  notFound: 'not_found',
  alreadyExists: 'already_exists',
  /** The object no longer has the resourceVersion or uid of the request. */
  conflict: 'conflict',
  /** The object breaks its schema or a rule; `fields` names the fields. */
  invalid: 'invalid',
  /** The revision was compacted: list again. */
  gone: 'gone',
  forbidden: 'forbidden',
  /** The store is unreachable or cannot write at present. No change was made, unless the response was lost: check before a retry. */
  unavailable: 'unavailable',
} as const
export type StoreCode = (typeof StoreCode)[keyof typeof StoreCode]

/** Error of a store. */
export class StoreError extends MooringError {
  declare readonly code: StoreCode
  readonly fields: readonly FieldError[]

  constructor(code: StoreCode, message: string, options: ErrorOptions & { fields?: readonly FieldError[] } = {}) {
    super(code, message, options)
    this.fields = options.fields ?? []
  }
}

/** Whether `error` is a StoreError with this code. */
export function isStoreError(error: unknown, code: StoreCode): error is StoreError {
  return error instanceof StoreError && error.code === code
}
