import { expect, test } from 'vitest'
import type { EngineAdmin } from '../../../operator/engines/engine.ts'
import { onlyInFull } from '../../support/scope.ts'

export const LIMITS = { connections: 12 }

/** Administration of one server, and sessions like those of a process that is killed. */
export interface CrashBench {
  readonly admin: EngineAdmin
  /** Opens another administration, whose connections fail after this number of statements. Default: never. */
  open(statements?: number): EngineAdmin
  /** Claims the tenant `source` and fills its database, once; ends its sessions. */
  furnish(): Promise<void>
}

interface Case {
  readonly what: string
  /** Sets the initial state before each round, for tenant `victim`. `source` may be its template. */
  readonly given?: (admin: EngineAdmin) => Promise<unknown>
  readonly operation: (admin: EngineAdmin) => Promise<unknown>
  readonly exists: boolean
}

const victim = { name: 'victim', password: 'password-of-victim' }
const claim = (admin: EngineAdmin): Promise<unknown> => admin.claim(victim, LIMITS, {})

const CASES: readonly Case[] = [
  { what: 'a claim from the pool', given: (admin) => admin.tidy(1), operation: claim, exists: true },
  { what: 'a claim from a template', operation: (admin) => admin.claim(victim, LIMITS, { template: 'source' }), exists: true },
  { what: 'a reset', given: claim, operation: (admin) => admin.reset('victim', {}), exists: true },
  { what: 'a drop', given: claim, operation: (admin) => admin.drop('victim'), exists: false },
  ...onlyInFull<Case>(
    { what: 'a claim from an empty pool', operation: claim, exists: true },
    {
      what: 'a reset to a template',
      given: claim,
      operation: (admin) => admin.reset('victim', { template: 'source' }),
      exists: true,
    },
  ),
]

/** Fails an operation after its first statement, its second and so on, and completes it by another administration. */
export function crashAtEachStatement(bench: CrashBench): void {
  test.each(CASES)(
    'at any statement of $what, a repetition completes it and leaves nothing over',
    async ({ given, operation, exists }) => {
      await bench.furnish()
      for (let statements = 0, died = true; died; statements++) {
        await given?.(bench.admin)
        died = await (async () => {
          await using admin = bench.open(statements)
          return await operation(admin).then(
            () => false,
            () => true,
          )
        })()
        await using next = bench.open()
        await operation(next)
        if (exists) await next.verify(victim)
        while (await next.tidy(0));
        const { tenants, spare, leftovers } = await next.catalog()
        expect({ tenants: [...tenants.keys()].toSorted(), spare, leftovers }).toEqual({
          tenants: exists ? ['source', 'victim'] : ['source'],
          spare: 0,
          leftovers: [],
        })
        await next.drop('victim')
      }
    },
    240_000,
  )
}

/** Counts statements down. Throws when none is left. */
export function fuse(statements: number): () => void {
  let left = statements
  return () => {
    if (left-- <= 0) throw new Error('the process is gone')
  }
}
