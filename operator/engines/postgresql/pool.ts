import type { Catalog } from '../engine.ts'
import { createPostponed } from '../postponed.ts'
import type { Builder } from './build.ts'
import { catalogOf, isSpare, readEntries, freshName } from './catalog.ts'
import { type Connection, quoteName, quoteText } from './connection.ts'
import type { Discard } from './drop.ts'

interface Deps {
  readonly connection: Connection
  readonly builder: Builder
  readonly discard: Discard
}

/** Time in ms after which the removal of leftovers is tried again, when it waits for sessions of any tenant. */
const STALLED_MS = 2_000
/** Time in ms after which the removal of one leftover is tried again, when a session in it goes on. */
const IN_USE_MS = 10_000

/** Prepared databases of one server, ready to be claimed. */
export interface WarmPool {
  /** Reserves a spare for the caller and calls `use` with its name. Returns false when the pool is empty. */
  withSpare(use: (spare: string) => Promise<void>): Promise<boolean>
  /**
   * Starts to build one more spare, and calls `use` with a reserved one. Finished spares go to callers in the order of their calls, whichever
   * build finishes first.
   */
  withNewSpare(use: (spare: string) => Promise<void>): Promise<void>
  catalog(): Promise<Catalog>
  tidy(size: number): Promise<boolean>
}

/**
 * Creates the warm pool: databases `pool_…` with a role of the same name, which a claim only renames and gives a password. The catalog is
 * its only state. This process caches names of spares, so that a claim needs no read of the catalog. A claim of a stale name fails.
 */
export function createWarmPool({ connection, builder, discard }: Deps): WarmPool {
  let known: string[] = []
  const reserved = new Set<string>()
  const waiting: PromiseWithResolvers<string>[] = []
  let last: Promise<unknown> = Promise.resolve()
  /** Time before which no leftover is tried again, in ms of `performance.now()`. */
  let pausedUntil = 0
  const postponed = createPostponed(IN_USE_MS)

  async function readCatalog(): Promise<Catalog> {
    const entries = await readEntries(connection)
    known = entries.filter((entry) => isSpare(entry) && !reserved.has(entry.name)).map(({ name }) => name)
    return catalogOf(entries, builder.inFlight)
  }

  async function withSpare(use: (spare: string) => Promise<void>): Promise<boolean> {
    if (known.length === 0) await readCatalog()
    const spare = known.pop()
    if (spare === undefined) return false
    await useReserved(spare, use)
    return true
  }

  async function useReserved(spare: string, use: (spare: string) => Promise<void>): Promise<void> {
    reserved.add(spare)
    try {
      await use(spare)
    } finally {
      reserved.delete(spare)
    }
  }

  async function makeSpare(): Promise<void> {
    const spare = freshName('pool')
    await builder.withRole({}, async (making) => {
      await connection.query(rename(making, spare))
    })
    const longest = waiting.shift()
    if (!longest) {
      known.push(spare)
      return
    }
    // Reserved in the same tick: otherwise a read of the catalog could offer the spare to another caller.
    reserved.add(spare)
    longest.resolve(spare)
  }

  async function withNewSpare(use: (spare: string) => Promise<void>): Promise<void> {
    const mine = Promise.withResolvers<string>()
    waiting.push(mine)
    // A failed build leaves one spare too few, so the last caller in the queue fails.
    makeSpare().catch((error: unknown) => waiting.pop()?.reject(error))
    await useReserved(await mine.promise, use)
  }

  async function removeLeftover(name: string): Promise<void> {
    postponed.postpone(name)
    const result = await discard(name)
    if (result !== 'stalled') return
    pausedUntil = performance.now() + STALLED_MS
    postponed.postpone(name, STALLED_MS)
  }

  async function oneUnit(size: number): Promise<boolean> {
    const { spare, leftovers } = await readCatalog()
    const due = performance.now() < pausedUntil ? [] : postponed.due(leftovers)
    const [leftover] = due
    // Spares come first, so that a leftover which cannot be removed does not keep the pool empty.
    if (spare < size) await makeSpare()
    else if (spare > size) await withSpare((name) => discard(name).then(() => undefined))
    else if (leftover !== undefined) await removeLeftover(leftover)
    return Math.abs(size - spare) + due.length > 1
  }

  return {
    withSpare,
    withNewSpare,
    catalog: readCatalog,
    tidy(size) {
      // Calls run in sequence: concurrent calls would create one spare too many.
      const unit = last.then(() => oneUnit(size))
      last = unit.catch(() => undefined)
      return unit
    },
  }
}

/** Returns the statements that rename the role and the database of one name. */
export function rename(from: string, to: string): string {
  return `ALTER ROLE ${quoteName(from)} RENAME TO ${quoteName(to)}; ${renameDatabase(from, to)}`
}

/**
 * Returns the statements that rename a database without sessions. ALTER DATABASE … RENAME would wait for locks on it, and any tenant may hold
 * one (ALTER ROLE … IN DATABASE). An update of the catalog waits for none. Fails like ALTER DATABASE when the database does not exist.
 */
export function renameDatabase(from: string, to: string): string {
  const update = `UPDATE pg_database SET datname = ${quoteText(to)} WHERE datname = ${quoteText(from)}`
  return `${update}; SELECT has_database_privilege(${quoteText(to)}, 'CONNECT')`
}
