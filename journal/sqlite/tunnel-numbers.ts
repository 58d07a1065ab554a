import type { DatabaseSync } from 'node:sqlite'

/** Small numbers for the uids of tunnels, which every row would repeat otherwise. */
export interface TunnelNumbers {
  /** Returns the number of a tunnel, and assigns one if it has none. Call it within a transaction. */
  of(uid: string): number
  /** Discards the numbers in memory, after a rollback. */
  forget(): void
}

export function createTunnelNumbers(db: DatabaseSync): TunnelNumbers {
  const known = new Map<string, number>()
  const find = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const add = db.prepare('INSERT INTO tunnels (uid) VALUES (?)')

  return {
    of(uid) {
      const number = known.get(uid) ?? Number(find.get(uid)?.number ?? add.run(uid).lastInsertRowid)
      known.set(uid, number)
      return number
    },
    forget: () => known.clear(),
  }
}
