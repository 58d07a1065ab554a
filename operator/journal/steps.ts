export interface StepsDeps {
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  /** Receives each error. */
  readonly onFailure: (error: unknown) => void
}

/** Runner of maintenance steps that isolates failures: a failed step does not prevent the others. */
export interface Steps {
  /** Returns the result of `step`, or undefined when it fails. A failure is logged once until the step succeeds again. */
  run<T>(name: string, step: () => Promise<T>): Promise<T | undefined>
}

export function createSteps({ log, onFailure }: StepsDeps): Steps {
  const failing = new Set<string>()
  return {
    async run(name, step) {
      try {
        const done = await step()
        if (failing.delete(name)) log.info({ step: name }, 'a maintenance step of the journal works again')
        return done
      } catch (error) {
        onFailure(error)
        if (!failing.has(name))
          log.warn({ err: error, step: name }, 'a maintenance step of the journal failed; it is tried again')
        failing.add(name)
        return undefined
      }
    },
  }
}
