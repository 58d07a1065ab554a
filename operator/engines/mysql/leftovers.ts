import type { EngineAdmin } from '../engine.ts'
import { createPostponed } from '../postponed.ts'
import { discardedBy, kindOf, type MysqlFamily, readCatalog } from './catalog.ts'
import type { Connection } from './connection.ts'
import type { Databases } from './databases.ts'

/** Time in ms after which the removal of a discarded database is tried again, when a session in it goes on. */
const IN_USE_MS = 5_000

interface Deps {
  readonly connection: Connection
  readonly family: MysqlFamily
  readonly databases: Pick<Databases, 'inFlight' | 'removeLeftover'>
}

/** Creates the removal of what drops and interrupted changes left on one server, one leftover at a time. */
export function createLeftovers({ connection, family, databases }: Deps): Pick<EngineAdmin, 'tidy' | 'discarded'> {
  /** Marks of discarded databases. */
  const postponed = createPostponed(IN_USE_MS)

  async function read(inFlight: ReadonlySet<string>): Promise<readonly string[]> {
    return (await readCatalog(connection, family, inFlight)).leftovers
  }

  return {
    async tidy() {
      const due = postponed.due(await read(databases.inFlight))
      const [leftover] = due
      if (leftover === undefined) return false
      if (kindOf(leftover) === 'gone') postponed.postpone(leftover)
      await databases.removeLeftover(leftover)
      return due.length > 1
    },
    async discarded() {
      return (await read(new Set())).flatMap((name) => discardedBy(name)?.owner ?? [])
    },
  }
}
