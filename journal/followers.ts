import type { RequestRecord } from './port.ts'

export type Listener = (record: RequestRecord) => void

/** Listeners for the requests of each tunnel, called when a request is kept. */
export interface Followers {
  /** Adds a listener. Returns a function that removes it. */
  follow(tunnel: string, listener: Listener): () => void
  has(tunnel: string): boolean
  notify(records: readonly RequestRecord[]): void
}

/** Creates the listeners. An error that one listener throws goes to `onError`; the other listeners are called all the same. */
export function createFollowers(onError: (error: unknown) => void): Followers {
  const followers = new Map<string, Set<Listener>>()

  function follow(tunnel: string, listener: Listener): () => void {
    const ofTunnel = followers.get(tunnel) ?? new Set()
    // Wrapped, so that the same function may be registered twice.
    const registered: Listener = (record) => {
      listener(record)
    }
    followers.set(tunnel, ofTunnel.add(registered))
    return () => {
      ofTunnel.delete(registered)
      if (ofTunnel.size === 0 && followers.get(tunnel) === ofTunnel) followers.delete(tunnel)
    }
  }

  function notify(records: readonly RequestRecord[]): void {
    for (const record of records) {
      for (const listener of [...(followers.get(record.tunnel) ?? [])]) {
        try {
          listener(record)
        } catch (error) {
          onError(error)
        }
      }
    }
  }

  return { follow, has: (tunnel) => followers.has(tunnel), notify }
}
