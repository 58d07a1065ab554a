import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Organization } from '../crds/organization.ts'
import { startCache, createScriptedStore, type ScriptedStore } from '../test/support/store/caches.ts'
import { settle, type VirtualClock } from '../test/support/clocks.ts'
import { StoreCode, StoreError } from './port.ts'

const names = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name: names }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), name: names }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 3000 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
  fc.record({ do: fc.constantFrom('settle' as const, 'bookmark' as const) }),
  fc.record({
    do: fc.constant('break' as const),
    what: fc.constantFrom('lists' as const, 'watches' as const),
    times: fc.integer({ min: 1, max: 3 }),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('strike' as const),
      what: fc.constantFrom('end' as const, ...Object.values(StoreCode)),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Effect of each step on the store or the clock. */
function actions(scripted: ScriptedStore, clock: VirtualClock) {
  return {
    put: ({ name }: Of<'put'>) => {
      scripted.put(name)
    },
    remove: ({ name }: Of<'remove'>) => {
      scripted.remove(name)
    },
    advance: ({ ms }: Of<'advance'>) => clock.advance(ms),
    compact: () => {
      scripted.compact()
    },
    settle: () => settle(),
    bookmark: () => {
      scripted.emit({ type: 'bookmark', resourceVersion: '1' })
    },
    break: ({ what, times }: Of<'break'>) => {
      scripted.broken[what] = times
    },
    strike: ({ what }: Of<'strike'>) => scripted.strike(what === 'end' ? what : new StoreError(what, 'struck')),
  }
}
type Of<D extends Step['do']> = Extract<Step, { do: D }>

test('after any failures of list and watch, the cache equals the list, and handlers were called for every change', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
      const scripted = createScriptedStore()
      await using running = startCache(scripted.store, { backoff: { baseMs: 100, maxMs: 2000 } })
      const mirror = new Map<string, Organization>()
      running.cache.onChange((key) => {
        const object = running.cache.get(key)
        if (object) mirror.set(key.name, object)
        else mirror.delete(key.name)
      })
      const held = () => new Map(running.cache.list().map((object) => [object.metadata.name, object]))
      const act = actions(scripted, running.clock)
      for (const one of steps) {
        await act[one.do](one as never)
        expect(mirror).toEqual(held())
      }
      await running.clock.advance(30_000)
      expect(held()).toEqual(scripted.objects)
      expect(mirror).toEqual(scripted.objects)
    }),
    { numRuns: 500 },
  )
})
