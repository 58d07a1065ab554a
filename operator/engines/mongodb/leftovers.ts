import type { EngineAdmin } from '../engine.ts'
import { createPostponed } from '../postponed.ts'
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
  const postponed = createPostponed(IN_USE_MS)

  return {
    async tidy() {
      const due = postponed.due((await listDiscarded(connection)).map(({ name }) => name))
      const [name] = due
      if (name === undefined) return false
      postponed.postpone(name)
      await lifecycle.removeDiscarded(name)
      return due.length > 1
    },
    async discarded() {
      return (await listDiscarded(connection)).map(({ owner }) => owner)
    },
  }
}
