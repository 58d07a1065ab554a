import { expect, test } from 'vitest'
import type { Builder } from './build.ts'
import type { Connection } from './connection.ts'
import { createEndedSessions } from './sessions/ended-sessions.ts'
import { createLockTable } from './locks.ts'
import { createWarmPool } from './pool.ts'
import type { Removal } from './removals.ts'
import { createStalls } from './sessions/stalls.ts'

const notHere = () => Promise.reject(new Error('not here'))

/** Creates a connection to a server with these leftovers. */
function connectionTo(leftovers: readonly string[]): Connection {
  const rows = leftovers.map((name) => ({ name, database: true, login: null }))
  const session = { query: () => Promise.resolve(rows as never[]) }
  return {
    ...session,
    tenants: session,
    spares: session,
    copies: session,
    drops: session,
    watch: session,
    lockTable: createLockTable({}),
    ended: createEndedSessions(),
    stalls: createStalls(),
    inside: notHere,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** Creates a pool over an empty catalog. The test ends its builds. */
function poolOfBuilds() {
  const builds: PromiseWithResolvers<undefined>[] = []
  const connection = connectionTo([])
  const builder: Builder = {
    inFlight: new Set(),
    async withRole(_origin, use) {
      const build = Promise.withResolvers<undefined>()
      builds.push(build)
      await build.promise
      await use('making_1')
    },
    forRole: notHere,
  }
  return { pool: createWarmPool({ connection, builder, discard: () => Promise.resolve('done') }), builds }
}

/** Starts callers that each wait for a new spare; `log` receives their names in the order of success or failure. */
function callers(pool: ReturnType<typeof poolOfBuilds>['pool'], names: readonly string[]) {
  const log: string[] = []
  const calls = names.map((name) =>
    pool
      .withNewSpare(async () => void log.push(name))
      .catch((error: unknown) => void log.push(`${name} ${error instanceof Error ? error.message : ''}`)),
  )
  return { log, all: Promise.all(calls) }
}

test('the first finished spare goes to the first caller', async () => {
  const { pool, builds } = poolOfBuilds()
  const { log, all } = callers(pool, ['first', 'second', 'third'])
  for (const build of builds.toReversed()) {
    const before = log.length
    build.resolve(undefined)
    await expect.poll(() => log.length).toBe(before + 1)
  }
  await all
  expect(log).toEqual(['first', 'second', 'third'])
})

test('a failed build fails the last caller; all other callers get a spare', async () => {
  const { pool, builds } = poolOfBuilds()
  const { log, all } = callers(pool, ['first', 'second', 'third'])
  builds[0]?.reject(new Error('no room'))
  await expect.poll(() => log).toEqual(['third no room'])
  builds[1]?.resolve(undefined)
  builds[2]?.resolve(undefined)
  await all
  expect(log).toEqual(['third no room', 'first', 'second'])
})

/** Tidies a pool with two leftovers, which stay, until nothing is to be done now. Returns the names of those that were tried. */
async function tryLeftovers(result: Removal): Promise<readonly string[]> {
  const [a, b] = ['trash_00000000000000aa', 'trash_00000000000000bb']
  const tried: string[] = []
  const builder: Builder = { inFlight: new Set(), withRole: notHere, forRole: notHere }
  const discard = async (name: string) => {
    tried.push(name)
    return result
  }
  const pool = createWarmPool({ connection: connectionTo([a, b]), builder, discard })
  while (await pool.tidy(0));
  return tried.map((name) => name.slice(-1))
}

test('a leftover that is in use delays no other one; a stalled removal delays all, and each ends the work for now', async () => {
  expect(await tryLeftovers('in use')).toEqual(['a', 'b'])
  expect(await tryLeftovers('stalled')).toEqual(['a'])
})
