import type { EngineAdmin } from '../engine.ts'
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
  /** Times before which a discarded database is not tried again, in ms of `performance.now()`, by its mark. */
  const postponed = new Map<string, number>()

  async function read(inFlight: ReadonlySet<string>): Promise<readonly string[]> {
    return (await readCatalog(connection, family, inFlight)).leftovers
  }

  return {
    async tidy() {
      const leftovers = await read(databases.inFlight)
      const now = performance.now()
      for (const mark of postponed.keys()) if (!leftovers.includes(mark)) postponed.delete(mark)
      const due = leftovers.filter((name) => (postponed.get(name) ?? 0) <= now)
      const [leftover] = due
      if (leftover === undefined) return false
      if (kindOf(leftover) === 'gone') postponed.set(leftover, now + IN_USE_MS)
      await databases.removeLeftover(leftover)
      return due.length > 1
    },
    async discarded() {
      return (await read(new Set())).flatMap((name) => discardedBy(name)?.owner ?? [])
    },
  }
}
