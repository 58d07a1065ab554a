/**
 * Base class of Mooring's errors. Callers branch on {@link MooringError.code}, never on text; `cause` keeps the original error.
 * The message is a sentence that may be shown to users, so it never contains a secret.
 */
export class MooringError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** Violated rule: `field` is a dotted path (`spec.motor`, `config.authorizedKeys[2]`), `message` the rule. */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** The `code` of a system or driver error (`ENOENT`, `57P03`), if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

export function hasCode(error: unknown, code: string): boolean {
  return codeOf(error) === code
}
