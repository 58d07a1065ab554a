import type { Socket } from 'node:net'
import { sourceKey } from '../source-key.ts'

/** Counts the connections of each source, until they close. */
export interface Sources {
  /** Counts one more. Returns how many the source of `address` has with it. */
  enter(socket: Pick<Socket, 'once'>, address: string): number
}

export function createSources(): Sources {
  const counts = new Map<string, number>()

  function leave(key: string): void {
    const left = (counts.get(key) ?? 1) - 1
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }

  return {
    enter(socket, address) {
      const key = sourceKey(address)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      socket.once('close', () => leave(key))
      return count
    },
  }
}
