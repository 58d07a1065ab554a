import type { EngineAdmin } from '../engine.ts'
import type { Connection } from './connection.ts'
import type { Lifecycle } from './lifecycle.ts'
import { listDiscarded } from './discarded-databases.ts'

/** Time in ms after which the removal of a discarded database is tried again, when an operation in it goes on. */
const IN_USE_MS = 5_000

interface Deps {
  readonly connection: Connection
  readonly lifecycle: Pick<Lifecycle, 'removeDiscarded'>
}

/** Creates the removal of the discarded databases of one server, one at a time. */
export function createLeftovers({ connection, lifecycle }: Deps): Pick<EngineAdmin, 'tidy' | 'discarded'> {
  /** Times before which a discarded database is not tried again, in ms of `performance.now()`, by its name. */
  const postponed = new Map<string, number>()

  return {
    async tidy() {
      const names = (await listDiscarded(connection)).map(({ name }) => name)
      const now = performance.now()
      for (const name of postponed.keys()) if (!names.includes(name)) postponed.delete(name)
      const due = names.filter((name) => (postponed.get(name) ?? 0) <= now)
      const [name] = due
      if (name === undefined) return false
      postponed.set(name, now + IN_USE_MS)
      await lifecycle.removeDiscarded(name)
      return due.length > 1
    },
    async discarded() {
      return (await listDiscarded(connection)).map(({ owner }) => owner)
    },
  }
}
