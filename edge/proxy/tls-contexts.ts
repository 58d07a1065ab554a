import type { SecureContext } from 'node:tls'

interface Deps {
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  /** Maximum number of cached contexts. Each takes about 34 KB, and 170 µs to create. */
  readonly size: number
}

/** Cache of TLS contexts by server name, least recently used first out. */
export interface Contexts {
  /**
   * Finds a context, as `SNICallback` of node:tls. A name without a certificate gets the server's default context. Such names are not
   * cached: a certificate may be issued at any time.
   */
  find(serverName: string, done: (error: Error | null, context?: SecureContext) => void): void
  forget(serverName: string): void
}

export function createContexts({ contextFor, size }: Deps): Contexts {
  const kept = new Map<string, SecureContext>()
  /** Lookups in progress: simultaneous handshakes share one. */
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
      // Not cached when forgotten meanwhile: the result may be outdated.
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
