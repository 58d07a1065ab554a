import type { SecureContext } from 'node:tls'

interface Deps {
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  /** Contexts that are kept: each takes some 34 KB and 170 µs to make. */
  readonly size: number
}

/** TLS contexts by name, those used last. */
export interface Contexts {
  /** As `SNICallback` of node:tls wants it: a name without a context is left to the server's own. Those are not kept, one may come at any time. */
  find(serverName: string, done: (error: Error | null, context?: SecureContext) => void): void
  forget(serverName: string): void
}

export function createContexts({ contextFor, size }: Deps): Contexts {
  const kept = new Map<string, SecureContext>()
  /** Those that are being asked for: a hundred handshakes ask once. */
  const asked = new Map<string, Promise<SecureContext | undefined>>()

  function keep(serverName: string, context: SecureContext): void {
    kept.delete(serverName)
    kept.set(serverName, context)
    if (kept.size <= size) return
    const [oldest] = kept.keys()
    if (oldest !== undefined) kept.delete(oldest)
  }

  async function ask(serverName: string): Promise<SecureContext | undefined> {
    const asking = contextFor(serverName)
    asked.set(serverName, asking)
    try {
      const context = await asking
      // Forgotten meanwhile: what was asked for is not the newest.
      if (context && asked.get(serverName) === asking) keep(serverName, context)
      return context
    } finally {
      if (asked.get(serverName) === asking) asked.delete(serverName)
    }
  }

  return {
    find(serverName, done) {
      const context = kept.get(serverName)
      if (context) {
        keep(serverName, context)
        done(null, context)
        return
      }
      const settled = (found: SecureContext | undefined) => done(null, found)
      const failed = (error: unknown) => done(error instanceof Error ? error : new Error('no certificate', { cause: error }))
      void (asked.get(serverName) ?? ask(serverName)).then(settled, failed)
    },
    forget(serverName) {
      kept.delete(serverName)
      asked.delete(serverName)
    },
  }
}
