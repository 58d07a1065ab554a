export interface StepsDeps {
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  /** Called with each error. */
  readonly onFailure: (error: unknown) => void
}

/** Runs what is to be done for the journal, so that what fails keeps nothing else from happening. */
export interface Steps {
  /** Returns what `step` does, undefined when it fails: that is told once, until it works again. */
  run<T>(name: string, step: () => Promise<T>): Promise<T | undefined>
}

export function createSteps({ log, onFailure }: StepsDeps): Steps {
  const failing = new Set<string>()
  return {
    async run(name, step) {
      try {
        const done = await step()
        if (failing.delete(name)) log.info({ step: name }, 'a step in looking after the journal works again')
        return done
      } catch (error) {
        onFailure(error)
        if (!failing.has(name))
          log.warn({ err: error, step: name }, 'a step in looking after the journal failed; it is tried again')
        failing.add(name)
        return undefined
      }
    },
  }
}
