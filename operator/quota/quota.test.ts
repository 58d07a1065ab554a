import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { isClaimed, SharedInstance } from '../../crds/shared-instance.ts'
import { claimedStatus, readyCondition, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { createQuota, fullMessage } from './quota.ts'

type Metadata = Partial<SharedInstance['metadata']>

/** Object that has not begun. Its uid is its name; its second of creation is the digits in the name. */
const fresh = (name: string, metadata: Metadata = {}, status?: SharedInstance['status']): SharedInstance => {
  const creationTimestamp = `2026-01-01T00:00:${(/\d+/.exec(name)?.[0] ?? '0').padStart(2, '0')}Z`
  return sharedInstance({ metadata: { name, uid: name, creationTimestamp, ...metadata }, ...(status && { status }) })
}
const begun = (name: string, metadata: Metadata = {}): SharedInstance => fresh(name, metadata, claimedStatus)
const waiting = (name: string, metadata: Metadata = {}): SharedInstance =>
  fresh(name, metadata, { conditions: [readyCondition('False', 'QuotaExceeded')] })
const going = { deletionTimestamp: '2026-01-01T01:00:00Z' }

function quotaOver(max: number, objects: readonly SharedInstance[]) {
  const instances = settableCache(SharedInstance, instanceIndexes)
  instances.put(...objects)
  return { quota: createQuota({ cache: instances.cache, max, hasBegun: isClaimed }), instances }
}

const me = fresh('a5')
test.each([
  { does: 'is admitted to an empty namespace', max: 1, others: [], full: undefined },
  { does: 'is admitted as the last within the quota', max: 3, others: [begun('b1'), begun('b9')], full: undefined },
  { does: 'is not admitted to a full namespace', max: 2, others: [begun('b1'), begun('b9')], full: { taken: 2, max: 2 } },
  { does: 'is not admitted with a quota of 0', max: 0, others: [], full: { taken: 0, max: 0 } },
  { does: 'is not admitted after the quota was lowered', max: 1, others: [begun('b1'), begun('b9')], full: { taken: 2, max: 1 } },
  { does: 'comes after an older object that has not begun', max: 1, others: [fresh('b1')], full: { taken: 1, max: 1 } },
  { does: 'comes after an older object above the quota', max: 1, others: [waiting('b1')], full: { taken: 1, max: 1 } },
  { does: 'comes before younger objects', max: 1, others: [fresh('b6'), waiting('b7')], full: undefined },
  { does: 'comes before an object of the same second with a greater uid', max: 1, others: [fresh('b5')], full: undefined },
  {
    does: 'comes after an object of the same second with a lesser uid',
    max: 1,
    others: [fresh('A5')],
    full: { taken: 1, max: 1 },
  },
  {
    does: 'is not blocked by an object that is being deleted and has not begun',
    max: 1,
    others: [fresh('b1', going)],
    full: undefined,
  },
  {
    does: 'is blocked by an object that has begun until that is gone',
    max: 1,
    others: [begun('b1', going)],
    full: { taken: 1, max: 1 },
  },
  {
    does: 'is not affected by other namespaces',
    max: 1,
    others: [begun('b1', { namespace: 'acme--test' })],
    full: undefined,
  },
])('an object $does', ({ max, others, full }) => {
  const { quota } = quotaOver(max, [me, ...others])
  expect(quota.admit(me)).toEqual(full)
  expect(quota.admit(me)).toEqual(full)
})

test('the oldest are admitted in any order of calls, and no more than the quota', () => {
  const all = Array.from({ length: 9 }, (_, index) => fresh(`i${index}`))
  fc.assert(
    fc.property(fc.shuffledSubarray(all, { minLength: all.length }), fc.integer({ min: 0, max: 10 }), (asked, max) => {
      const { quota } = quotaOver(max, all)
      const admitted = asked.filter((each) => quota.admit(each) === undefined)
      expect(new Set(admitted)).toEqual(new Set(all.slice(0, max)))
    }),
  )
})

const steps = {
  comes: ({ seen }: Life, name: string) => seen.get(name) ?? seen.set(name, fresh(name)),
  'is asked about'({ seen, living, quota }: Life, name: string) {
    const now = seen.get(name)
    if (now && !isClaimed(now) && !quota.admit(now)) living.add(name)
  },
  begins: ({ seen, living }: Life, name: string) => living.has(name) && seen.set(name, begun(name, { resourceVersion: '8' })),
  goes({ seen, living, instances }: Life, name: string) {
    const now = seen.get(name)
    if (now) instances.remove(now)
    seen.delete(name)
    living.delete(name)
  },
} as const

interface Life extends ReturnType<typeof quotaOver> {
  readonly seen: Map<string, SharedInstance>
  /** Admitted objects that still exist. */
  readonly living: Set<string>
}

test('no more than the quota are admitted, however late the cache shows new objects and begun ones', () => {
  const name = fc.integer({ min: 0, max: 7 }).map((index) => `i${index}`)
  const does = fc.constantFrom('comes', 'is asked about', 'begins', 'goes')
  fc.assert(
    fc.property(fc.array(fc.record({ name, does }), { minLength: 20, maxLength: 60 }), (taken) => {
      const life: Life = { ...quotaOver(3, []), seen: new Map(), living: new Set() }
      for (const step of taken) {
        steps[step.does](life, step.name)
        life.instances.put(...life.seen.values())
        expect(life.living.size).toBeLessThanOrEqual(3)
      }
    }),
  )
})

test('an admitted object stays admitted when the cache shows an older one later', () => {
  const { quota, instances } = quotaOver(1, [fresh('b5')])
  expect(quota.admit(fresh('b5'))).toBeUndefined()
  instances.put(fresh('a5'))
  expect(quota.admit(fresh('a5'))).toEqual({ taken: 1, max: 1 })
  instances.put(begun('b5', { resourceVersion: '8' }))
  expect(quota.admit(fresh('a5'))).toEqual({ taken: 1, max: 1 })
  instances.remove(begun('b5'))
  expect(quota.admit(fresh('a5'))).toBeUndefined()
})

test('next returns the oldest waiting objects, as many as may be admitted', () => {
  const line = [waiting('w4'), waiting('w2'), waiting('w3'), waiting('w1', going)]
  const there = [begun('b7'), begun('b8'), fresh('f0'), waiting('other9', { namespace: 'acme--test' })]
  const next = (max: number) => quotaOver(max, [...line, ...there]).quota.next('acme--prod')
  expect(next(2)).toEqual([])
  expect(next(4).map(({ name }) => name)).toEqual(['w2', 'w3'])
  expect(next(9).map(({ name }) => name)).toEqual(['w2', 'w3', 'w4'])
})

test('waiting objects of a full namespace are not listed', () => {
  const line = Array.from({ length: 50 }, (_, index) => waiting(`w${index}`))
  const { quota, instances } = quotaOver(1, [begun('b1'), ...line])
  const looks = [vi.spyOn(instances.cache, 'list'), vi.spyOn(instances.cache, 'byIndex')]
  expect(quota.admit(waiting('w3'))).toEqual({ taken: 1, max: 1 })
  for (const look of looks) expect(look).not.toHaveBeenCalled()
})

test('an empty namespace is forgotten', () => {
  const { quota, instances } = quotaOver(1, [me])
  const byUid = vi.spyOn(instances.cache, 'byUid')
  quota.admit(me)
  instances.remove(me)
  quota.next('acme--prod')
  expect(byUid).toHaveBeenCalledExactlyOnceWith('a5')
  quota.next('acme--prod')
  expect(byUid).toHaveBeenCalledTimes(1)
})

test('countAdmissible counts the objects that may be admitted in each namespace', () => {
  const here = Array.from({ length: 9 }, (_, index) => fresh(`i${index}`))
  const there = fresh('t1', { namespace: 'acme--test' })
  const { quota } = quotaOver(4, [...here, there, begun('b9')])
  expect(quota.countAdmissible([...here, there])).toBe(4)
  expect(here.slice(0, 2).map((each) => quota.admit(each))).toEqual([undefined, undefined])
  expect(quota.countAdmissible(here)).toBe(3)
  expect(quota.countAdmissible(here.slice(2))).toBe(1)
})

test('the message names the number of objects and the quota', () => {
  expect(fullMessage({ taken: 50, max: 50 }, 'tunnels')).toBe(
    'the namespace has 50 tunnels, and may have 50: delete one, or ask for a higher quota',
  )
})

test('a deleted object that still takes resources counts until it is removed', () => {
  const instances = settableCache(SharedInstance, instanceIndexes)
  instances.put(begun('b1'), me)
  let left = 1
  const lingering = () => left
  const quota = createQuota({ cache: instances.cache, max: 2, hasBegun: isClaimed, lingering })
  const full = quota.admit(me)
  expect(full).toEqual({ taken: 2, max: 2, lingering: 1 })
  expect(full && fullMessage(full, 'instances')).toContain('1 of them deleted')
  expect(quota.countAdmissible([me])).toBe(0)
  left = 0
  expect(quota.admit(me)).toBeUndefined()
})
