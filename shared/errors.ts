/**
 * The one error base of Mooring. Callers branch on {@link MooringError.code}, never on text; `cause` keeps what
 * led to it. A message is a sentence that may be shown to a user, so it never holds a secret.
 */
export class MooringError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** One violated rule: `field` is a dotted path (`spec.motor`, `config.authorizedKeys[2]`), `message` the rule. */
export interface FieldError {
  readonly field: string
  readonly message: string
}
