import { type FieldError, MooringError } from '../shared/errors.ts'

/** Why a store refused. Both stores throw these and no others; branch on `code`. */
export const StoreCode = {
  notFound: 'not_found',
  alreadyExists: 'already_exists',
  /** The resourceVersion or uid in the request is no longer the object's. */
  conflict: 'conflict',
  /** The object breaks its schema or a rule; `fields` says where. */
  invalid: 'invalid',
  /** The watch or list position was compacted: list again. */
  gone: 'gone',
  forbidden: 'forbidden',
  /** The store cannot write or be reached now. Nothing was changed, unless an answer was lost on its way: look before trying again. */
  unavailable: 'unavailable',
} as const
export type StoreCode = (typeof StoreCode)[keyof typeof StoreCode]

export class StoreError extends MooringError {
  declare readonly code: StoreCode
  readonly fields: readonly FieldError[]

  constructor(code: StoreCode, message: string, options: ErrorOptions & { fields?: readonly FieldError[] } = {}) {
    super(code, message, options)
    this.fields = options.fields ?? []
  }
}

/** True when `error` is a StoreError of that code. */
export function isStoreError(error: unknown, code: StoreCode): error is StoreError {
  return error instanceof StoreError && error.code === code
}
