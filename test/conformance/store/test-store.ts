import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import type { Draft, Kind, Resource } from '../../../crds/kind.ts'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { StoreError, type Key, type Store, type ListOptions, type WatchEvent } from '../../../store/port.ts'
import { LATER } from '../../support/patience.ts'

/** Store under test. `compact` makes all earlier revisions too old for a watch; without it that clause is not tested. */
export interface StoreUnderTest extends AsyncDisposable {
  readonly store: Store
  readonly compact?: () => Promise<void>
}
export type Open = () => Promise<StoreUnderTest>

/** Store with a Namespace for one test, which is deleted on disposal. */
export interface TestStore extends StoreUnderTest {
  readonly namespace: string
}

export const unique = (): string => `conformance-${randomUUID().slice(0, 13)}`
export const aRegion = '00000000-0000-4000-8000-000000000001'
export const finalizer = 'mooring.dev/conformance'

/** Creates a Namespace for one test in a store that outlives it. */
export async function testStoreIn(subject: StoreUnderTest): Promise<TestStore> {
  const namespace = unique()
  await subject.store.create(Namespace, { metadata: { name: namespace } })
  return {
    store: subject.store,
    ...(subject.compact && { compact: subject.compact }),
    namespace,
    async [Symbol.asyncDispose]() {
      await subject.store.delete(Namespace, { name: namespace }).catch(() => undefined)
    },
  }
}

export async function openTestStore(open: Open): Promise<TestStore> {
  const subject = await open()
  const opened = await testStoreIn(subject)
  return {
    ...opened,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await subject[Symbol.asyncDispose]()
    },
  }
}

type InstanceDraft = Draft<typeof SharedInstance>

/** Returns a valid SharedInstance; `metadata` and `spec` add fields or replace them. */
export function instance(
  key: { readonly namespace: string; readonly name: string },
  { metadata, spec }: { metadata?: Partial<InstanceDraft['metadata']>; spec?: Partial<InstanceDraft['spec']> } = {},
): InstanceDraft {
  return {
    metadata: { ...key, ...metadata },
    spec: { identifier: 'conformance', region: aRegion, motor: 'postgresql-15.4.0', ...spec },
  }
}

/** Expects that `promise` rejects with a StoreError, and returns it. */
export async function expectStoreError(promise: Promise<unknown>): Promise<StoreError> {
  const outcome = await promise.then(
    () => 'it was accepted',
    (error: unknown) => error,
  )
  if (outcome instanceof StoreError) return outcome
  throw new Error('a StoreError was expected', { cause: outcome })
}

/** Waits until an object is deleted: clean-up runs in the background. */
export async function expectGone(store: Store, kind: Kind, key: Key): Promise<void> {
  await vi.waitFor(async () => {
    expect(await store.get(kind, key)).toBeUndefined()
  }, LATER)
}

type Change<K extends Kind> = Exclude<WatchEvent<K>, { type: 'bookmark' }>

/** Watch that a test reads event by event. It skips bookmarks, and expects that no older event follows one. */
export interface Reader<K extends Kind> extends AsyncDisposable {
  next(): Promise<Change<K>>
  /** Returns the next `count` events as `type name`. */
  take(count: number): Promise<string[]>
}

export function reader<K extends Kind>(store: Store, kind: K, from: ListOptions & { resourceVersion: string }): Reader<K> {
  const abort = new AbortController()
  const events = store.watch(kind, { ...from, signal: abort.signal })[Symbol.asyncIterator]()
  let passed = 0

  async function next(): Promise<Change<K>> {
    const result = await events.next()
    if (result.done) throw new Error('the watch ended')
    if (result.value.type !== 'bookmark') {
      expect(revisionOf(result.value.object)).toBeGreaterThan(passed)
      return result.value
    }
    passed = Number(result.value.resourceVersion)
    return next()
  }
  return {
    next,
    async take(count) {
      const taken: string[] = []
      while (taken.length < count) {
        const { type, object } = await next()
        taken.push(`${type} ${object.metadata.name}`)
      }
      return taken
    },
    async [Symbol.asyncDispose]() {
      abort.abort()
      await events.return?.()
    },
  }
}

export const revisionOf = (object: Pick<Resource<Kind>, 'metadata'>): number => Number(object.metadata.resourceVersion)
