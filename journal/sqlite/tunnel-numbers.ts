import type { DatabaseSync } from 'node:sqlite'

/** Small numbers for the uids of tunnels, which every row would else repeat. */
export interface TunnelNumbers {
  /** The number of a tunnel, given out now if it has none. Within a transaction. */
  of(uid: string): number
  /** What was given out since the last commit may not be so any more. */
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
