import { expect } from 'vitest'
import type { Kind, Resource } from '../../../crds/kind.ts'
import type { ListOptions, Store, WatchEvent } from '../../../store/port.ts'

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
