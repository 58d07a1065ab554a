import type { RequestRecord } from './port.ts'

export type Listener = (record: RequestRecord) => void

/** Who wants to hear of a tunnel's requests as they are kept. */
export interface Followers {
  /** Returns how to stop that. */
  follow(tunnel: string, listener: Listener): () => void
  has(tunnel: string): boolean
  tell(records: readonly RequestRecord[]): void
}

/** `onError` gets what a listener throws; the others are told all the same. */
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

  function tell(records: readonly RequestRecord[]): void {
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

  return { follow, has: (tunnel) => followers.has(tunnel), tell }
}
