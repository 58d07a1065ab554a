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
  const cached = new Map<string, SecureContext>()
  /** Lookups in progress: simultaneous handshakes share one. */
  const lookups = new Map<string, Promise<SecureContext | undefined>>()

  function cache(serverName: string, context: SecureContext): void {
    cached.delete(serverName)
    cached.set(serverName, context)
    if (cached.size <= size) return
    const [oldest] = cached.keys()
    if (oldest !== undefined) cached.delete(oldest)
  }

  async function lookUp(serverName: string): Promise<SecureContext | undefined> {
    const lookup = contextFor(serverName)
    lookups.set(serverName, lookup)
    try {
      const context = await lookup
      // Not cached when forgotten meanwhile: the result may be outdated.
      if (context && lookups.get(serverName) === lookup) cache(serverName, context)
      return context
    } finally {
      if (lookups.get(serverName) === lookup) lookups.delete(serverName)
    }
  }

  return {
    find(serverName, done) {
      const context = cached.get(serverName)
      if (context) {
        cache(serverName, context)
        done(null, context)
        return
      }
      const settled = (found: SecureContext | undefined) => done(null, found)
      const failed = (error: unknown) => done(error instanceof Error ? error : new Error('no certificate', { cause: error }))
      void (lookups.get(serverName) ?? lookUp(serverName)).then(settled, failed)
    },
    forget(serverName) {
      cached.delete(serverName)
      lookups.delete(serverName)
    },
  }
}
