interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/** Says once that the journal cannot be written, and once that it can again: a full disk must not fill the log too. */
export interface FailureLog {
  readonly fails: (error: unknown) => void
  readonly works: () => void
}

export function createFailureLog(log: Logger, path: string): FailureLog {
  let failing = false
  return {
    fails(error) {
      if (!failing) log.warn({ err: error, path }, 'the journal cannot be written now; it is tried again')
      failing = true
    },
    works() {
      if (failing) log.info({ path }, 'the journal is written again')
      failing = false
    },
  }
}
