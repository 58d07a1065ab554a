import type { DatabaseServer } from '../../crds/database-server.ts'

export interface Use {
  /** Whether the server has no instance, and none waits for its motor. */
  readonly isIdle: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Times since which servers have been idle. They are not stored: after a restart a server counts as idle since its creation. */
export interface IdleServers {
  /** Notes the present use. @returns milliseconds since the epoch; undefined for a server in use */
  readonly since: (server: DatabaseServer, use: Use) => number | undefined
  readonly forget: (server: DatabaseServer) => void
}

export function createIdleServers(): IdleServers {
  /** By uid; `used` for a server that was in use. */
  const known = new Map<string, number | 'used'>()
  return {
    since({ metadata }, { isIdle, now }) {
      if (!isIdle) {
        known.set(metadata.uid, 'used')
        return undefined
      }
      const before = known.get(metadata.uid) ?? Date.parse(metadata.creationTimestamp)
      const since = before === 'used' ? now : before
      known.set(metadata.uid, since)
      return since
    },
    forget: ({ metadata }) => void known.delete(metadata.uid),
  }
}
