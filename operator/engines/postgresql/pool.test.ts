import { expect, test } from 'vitest'
import type { Builder } from './build.ts'
import type { Connection } from './connection.ts'
import { createEndedSessions } from './ended-sessions.ts'
import { createLockTable } from './locks.ts'
import { createWarmPool } from './pool.ts'
import { createStalls } from './stalls.ts'

/** Creates a pool over an empty catalog. The test ends its builds. */
function poolOfBuilds() {
  const builds: PromiseWithResolvers<undefined>[] = []
  const session = { query: () => Promise.resolve([]) }
  const connection: Connection = {
    ...session,
    tenants: session,
    spares: session,
    copies: session,
    drops: session,
    watch: session,
    lockTable: createLockTable({}),
    ended: createEndedSessions(),
    stalls: createStalls(),
    inside: () => Promise.reject(new Error('not here')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  const builder: Builder = {
    inFlight: new Set(),
    async withRole(_origin, use) {
      const build = Promise.withResolvers<undefined>()
      builds.push(build)
      await build.promise
      await use('making_1')
    },
    forRole: () => Promise.reject(new Error('not here')),
  }
  return { pool: createWarmPool({ connection, builder, discard: () => Promise.resolve(true) }), builds }
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
