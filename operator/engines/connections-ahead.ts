/** Connection on which no login has begun. */
interface Unused {
  /** Resolves when the connection has ended. Never rejects. */
  readonly ended: Promise<unknown>
  close(): void
}

/** Connections for the logins of tenants. Disposing closes those that were opened in advance and not taken. */
export interface ConnectionsAhead<Connection> extends Disposable {
  /** Connects in advance for an imminent login of the tenant. */
  readonly expect: (name: string) => void
  /** Returns the connection that was opened for the tenant, or a new one. */
  readonly take: (name: string) => Connection
}

export function createConnectionsAhead<Connection extends Unused>(dial: () => Connection): ConnectionsAhead<Connection> {
  const expected = new Map<string, Connection>()
  return {
    expect(name) {
      if (expected.has(name)) return
      const connection = dial()
      expected.set(name, connection)
      // The connection may have ended unused, by its timeout or an error.
      void connection.ended.then(() => {
        if (expected.get(name) === connection) expected.delete(name)
      })
    },
    take(name) {
      const connection = expected.get(name)
      expected.delete(name)
      return connection ?? dial()
    },
    [Symbol.dispose]() {
      for (const connection of expected.values()) connection.close()
    },
  }
}
