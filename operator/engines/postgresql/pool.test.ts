import { expect, test } from 'vitest'
import type { Builder } from './build.ts'
import type { Connection } from './connection.ts'
import { createLockTable } from './lock-table.ts'
import { warmPool } from './pool.ts'

/** A pool over a catalog that is empty, whose builds end when the test says so. */
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
  return { pool: warmPool({ connection, builder, discard: () => Promise.resolve() }), builds }
}

/** Callers that wait for a new spare each; `log` gets their names as they are served or refused. */
function callers(pool: ReturnType<typeof poolOfBuilds>['pool'], names: readonly string[]) {
  const log: string[] = []
  const calls = names.map((name) =>
    pool
      .withNewSpare(async () => void log.push(name))
      .catch((error: unknown) => void log.push(`${name} ${error instanceof Error ? error.message : ''}`)),
  )
  return { log, all: Promise.all(calls) }
}

test('whichever spare is ready first goes to who has waited longest', async () => {
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

test('a build that fails is the loss of who came last; all others are served', async () => {
  const { pool, builds } = poolOfBuilds()
  const { log, all } = callers(pool, ['first', 'second', 'third'])
  builds[0]?.reject(new Error('no room'))
  await expect.poll(() => log).toEqual(['third no room'])
  builds[1]?.resolve(undefined)
  builds[2]?.resolve(undefined)
  await all
  expect(log).toEqual(['third no room', 'first', 'second'])
})
