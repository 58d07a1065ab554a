import { SharedInstance } from '../../crds/shared-instance.ts'
import { isReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'

/** Watch of a namespace's instances, as a client would use. */
export interface ReadyWatch extends AsyncDisposable {
  /** Resolves when the watch has reported the instance of this name as ready. */
  ready(name: string): Promise<void>
  /** Resolves when the watch has reported its deletion. */
  gone(name: string): Promise<void>
}

export async function watchReady(store: Store, namespace: string): Promise<ReadyWatch> {
  const stop = new AbortController()
  const { resourceVersion } = await store.list(SharedInstance, { namespace })
  const ready = new Map<string, PromiseWithResolvers<undefined>>()
  const gone = new Map<string, PromiseWithResolvers<undefined>>()

  const promised = (of: typeof ready, name: string): PromiseWithResolvers<undefined> => {
    const found = of.get(name) ?? Promise.withResolvers<undefined>()
    of.set(name, found)
    return found
  }

  async function follow(): Promise<void> {
    for await (const event of store.watch(SharedInstance, { namespace, resourceVersion, signal: stop.signal })) {
      if (event.type === 'bookmark') continue
      const { name } = event.object.metadata
      if (event.type === 'deleted') promised(gone, name).resolve(undefined)
      else if (isReady(event.object)) promised(ready, name).resolve(undefined)
    }
  }
  const following = follow()
  /** Rejects all waiting calls when the watch breaks. */
  const orBroken = async (awaited: Promise<undefined>): Promise<void> => {
    await Promise.race([awaited, following.then(() => Promise.reject(new Error('the watch ended')))])
  }

  return {
    ready: (name) => orBroken(promised(ready, name).promise),
    gone: (name) => orBroken(promised(gone, name).promise),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await following
    },
  }
}
