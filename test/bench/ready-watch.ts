import { SharedInstance } from '../../crds/shared-instance.ts'
import { isReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'

/** Sees instances of a namespace become ready, as a client does that watches. */
export interface ReadyWatch extends AsyncDisposable {
  /** Resolves when the watch says that the instance of that name is ready, or has said so. */
  ready(name: string): Promise<void>
  /** Resolves when it says that it is gone. */
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
  /** A watch that broke would leave everybody waiting. */
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
