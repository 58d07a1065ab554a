import { Secret } from '../../../crds/core.ts'
import { annotations } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Cache } from '../../../store/cache.ts'
import { ready, withCondition } from '../../../store/conditions.ts'
import { isStoreError, type Key, type Store } from '../../../store/port.ts'

/** Simulated operator: writes the status that the operator would write, without a database. */
export interface InstancePlayer {
  /** Stops reconciling. */
  pause(): void
  /** Reconciles all waiting changes, and those to come. */
  resume(): void
  /** Reasons of rejection, by the identifier of the instance. */
  refuse(identifier: string, reason: string): void
}

/** Id of the simulated password of a version. */
const idOf = (version: number) => `00000000-0000-4000-8000-${String(version).padStart(12, '0')}`

const base64 = (text: string) => Buffer.from(text).toString('base64')

export function playOperator(store: Store, instances: Cache<typeof SharedInstance>): InstancePlayer {
  const refusals = new Map<string, string>()
  const left = new Map<string, Key>()
  let paused = false
  let working = Promise.resolve()

  async function carryOut(key: Key): Promise<void> {
    const instance = await store.get(SharedInstance, key)
    if (!instance) return
    const { metadata, spec } = instance
    if (metadata.deletionTimestamp !== undefined) {
      await store.mergePatch(SharedInstance, key, { metadata: { finalizers: [] } })
      return
    }
    const refusal = refusals.get(spec.identifier)
    const stamp = { type: 'Ready', generation: metadata.generation, now: new Date() }
    const condition = refusal ? ({ status: 'False', reason: refusal, message: 'refused' } as const) : ready('Claimed', 'it works')
    const conditions = withCondition(instance.status?.conditions, condition, stamp)
    const secret = { namespace: key.namespace, name: `${key.name}-credentials` }
    const done = refusal ? {} : await claim(instance, secret)
    await store.patchStatus(SharedInstance, key, { ...done, observedGeneration: metadata.generation, conditions })
  }

  async function claim({ spec }: SharedInstance, secret: Key) {
    const password = `password-${spec.passwordVersion}`
    const passwordId = idOf(spec.passwordVersion)
    const marks = { [annotations.passwordVersion]: String(spec.passwordVersion), [annotations.passwordId]: passwordId }
    const data = { password: base64(password), uri: base64(`postgresql://u:${password}@127.0.0.1:15432/n`) }
    try {
      const metadata = { name: secret.name, namespace: secret.namespace ?? '', annotations: marks }
      await store.create(Secret, { metadata, type: 'Opaque', data })
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
      await store.mergePatch(Secret, secret, { metadata: { annotations: marks }, data })
    }
    const { passwordVersion, resetVersion, enabled: isEnabled } = spec
    const at = { name: 'n', user: 'u', host: '127.0.0.1', port: 15432, engineVersion: '15.4' }
    const extensions = { extensions: spec.extensions, extensionsVersion: spec.extensionsVersion }
    return { ...at, ...extensions, secretRef: { name: secret.name }, passwordVersion, passwordId, resetVersion, isEnabled }
  }

  function work(): void {
    if (paused) return
    for (const [id, key] of left) {
      left.delete(id)
      working = working
        .then(() => carryOut(key))
        .catch((error: unknown) => {
          // Level-triggered like the operator: after any error the object is reconciled again. Deleted objects are done.
          if (isStoreError(error, 'conflict')) left.set(id, key)
        })
    }
  }

  instances.onChange((key) => {
    left.set(`${key.namespace ?? ''}/${key.name}`, key)
    work()
  })

  return {
    pause: () => void (paused = true),
    resume: () => {
      paused = false
      work()
    },
    refuse: (identifier, reason) => void refusals.set(identifier, reason),
  }
}
