export interface WorkListeners {
  readonly notify: () => void
  /** Adds a listener. Returns a function that removes it. */
  readonly listen: (listener: () => void) => () => void
}

/** Creates a set of listeners of new events and deliveries. */
export function createWorkListeners(): WorkListeners {
  const listeners = new Set<() => void>()
  return {
    notify: () => listeners.forEach((listener) => listener()),
    listen(listener) {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
  }
}
