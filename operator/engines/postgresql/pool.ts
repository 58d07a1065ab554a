import type { Catalog } from '../engine.ts'
import type { Builder } from './build.ts'
import { catalogOf, isSpare, readEntries } from './catalog.ts'
import type { Connection } from './connection.ts'
import { quoteName } from './connection.ts'
import type { Discard } from './drop.ts'
import { freshName } from './names.ts'

interface Deps {
  readonly connection: Connection
  readonly builder: Builder
  readonly discard: Discard
}

export interface WarmPool {
  /** Reserves a spare for this caller alone and gives its name to `use`; false when there is none. */
  withSpare(use: (spare: string) => Promise<void>): Promise<boolean>
  /**
   * Has one more made, and gives `use` the first that is ready: spares go to whoever has waited longest, whoever had them made, so that
   * in a crowd nobody is overtaken.
   */
  withNewSpare(use: (spare: string) => Promise<void>): Promise<void>
  catalog(): Promise<Catalog>
  tidy(size: number): Promise<boolean>
}

/**
 * The warm pool: databases `pool_…` with a role of the same name, ready but for name and password. It lives in the catalog; what is
 * kept here is only a list of names that were seen there, so that a claim need not ask. A stale name makes its claim fail, not succeed twice.
 */
export function warmPool({ connection, builder, discard }: Deps): WarmPool {
  let known: string[] = []
  const reserved = new Set<string>()
  const waiting: PromiseWithResolvers<string>[] = []
  let last: Promise<unknown> = Promise.resolve()

  async function look(): Promise<Catalog> {
    const entries = await readEntries(connection)
    known = entries.filter((entry) => isSpare(entry) && !reserved.has(entry.name)).map(({ name }) => name)
    return catalogOf(entries, builder.inFlight)
  }

  async function withSpare(use: (spare: string) => Promise<void>): Promise<boolean> {
    if (known.length === 0) await look()
    const spare = known.pop()
    if (spare === undefined) return false
    await reserving(spare, use)
    return true
  }

  async function reserving(spare: string, use: (spare: string) => Promise<void>): Promise<void> {
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
    // At once, or a look at the catalog would take it for free before its new owner has it.
    reserved.add(spare)
    longest.resolve(spare)
  }

  async function withNewSpare(use: (spare: string) => Promise<void>): Promise<void> {
    const mine = Promise.withResolvers<string>()
    waiting.push(mine)
    // One less is made than is waited for: that is the loss of whoever came last.
    makeSpare().catch((error: unknown) => waiting.pop()?.reject(error))
    await reserving(await mine.promise, use)
  }

  async function oneUnit(size: number): Promise<boolean> {
    const { spare, leftovers } = await look()
    const [leftover] = leftovers
    // A leftover that cannot be removed must not keep the pool empty, so spares come first.
    if (spare < size) await makeSpare()
    else if (spare > size) await withSpare(discard)
    else if (leftover !== undefined) await discard(leftover)
    return Math.abs(size - spare) + leftovers.length > 1
  }

  return {
    withSpare,
    withNewSpare,
    catalog: look,
    tidy(size) {
      // One after another, or two calls would both make the last spare.
      const unit = last.then(() => oneUnit(size))
      last = unit.catch(() => undefined)
      return unit
    },
  }
}

/** A role and a database of one name, renamed together. */
export function rename(from: string, to: string): string {
  return `ALTER ROLE ${quoteName(from)} RENAME TO ${quoteName(to)}; ALTER DATABASE ${quoteName(from)} RENAME TO ${quoteName(to)}`
}
