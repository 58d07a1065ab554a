interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/**
 * Logs the first of a row of failed writes, and the first write that succeeds after them: a full disk must not fill the log too.
 */
export interface FailureLog {
  readonly failed: (error: unknown) => void
  readonly succeeded: () => void
}

export function createFailureLog(log: Logger, path: string): FailureLog {
  let failing = false
  return {
    failed(error) {
      if (!failing) log.warn({ err: error, path }, 'journal cannot be written; retrying')
      failing = true
    },
    succeeded() {
      if (failing) log.info({ path }, 'journal can be written again')
      failing = false
    },
  }
}
