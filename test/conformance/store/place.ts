import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import type { Draft, Kind } from '../../../crds/kind.ts'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { StoreError } from '../../../store/errors.ts'
import type { Key, Store } from '../../../store/port.ts'

/** A store under test. `compact` makes every revision before now too old to watch from; without it that one clause is not judged. */
export interface Subject extends AsyncDisposable {
  readonly store: Store
  readonly compact?: () => Promise<void>
}
export type Open = () => Promise<Subject>

/** A store with a Namespace of its own, which goes with it. */
export interface Place extends Subject {
  readonly namespace: string
}

export const unique = (): string => `conformance-${randomUUID().slice(0, 13)}`
export const aRegion = '00000000-0000-4000-8000-000000000001'
export const finalizer = 'mooring.dev/conformance'

/** A Namespace of its own in the store, which outlives it. */
export async function placeIn(subject: Subject): Promise<Place> {
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

export async function openPlace(open: Open): Promise<Place> {
  const subject = await open()
  const place = await placeIn(subject)
  return {
    ...place,
    async [Symbol.asyncDispose]() {
      await place[Symbol.asyncDispose]()
      await subject[Symbol.asyncDispose]()
    },
  }
}

type InstanceDraft = Draft<typeof SharedInstance>

/** A valid SharedInstance; `metadata` and `spec` add to it or replace parts of it. */
export function instance(
  key: { readonly namespace: string; readonly name: string },
  { metadata, spec }: { metadata?: Partial<InstanceDraft['metadata']>; spec?: Partial<InstanceDraft['spec']> } = {},
): InstanceDraft {
  return {
    metadata: { ...key, ...metadata },
    spec: { identifier: 'conformance', region: aRegion, motor: 'postgresql-15.4.0', ...spec },
  }
}

/** The refusal that `promise` ends with. */
export async function refusalOf(promise: Promise<unknown>): Promise<StoreError> {
  const outcome = await promise.then(
    () => 'it was accepted',
    (error: unknown) => error,
  )
  if (outcome instanceof StoreError) return outcome
  throw new Error('a StoreError was expected', { cause: outcome })
}

/** Resolves when the object is no longer there: clean-up runs in the background. */
export async function whenGone(store: Store, kind: Kind, key: Key): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await store.get(kind, key)).toBeUndefined()
    },
    { timeout: 60_000, interval: 20 },
  )
}
