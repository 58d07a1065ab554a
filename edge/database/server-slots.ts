import { slugsOf } from '../../crds/names.ts'
import type { Route } from '../route.ts'

/** Maximum numbers of connections of an edge to database servers. */
export interface ServerSlotLimits {
  /** To all servers together. */
  readonly databaseConnections: number
  /** To the servers of one organization. */
  readonly connectionsPerOrganization: number
  /** To the server of one database, over all SSH connections of the edge. */
  readonly connectionsPerDatabase: number
}

/** Database that a slot is for. */
type Database = Pick<Route, 'id' | 'namespace'>

/**
 * Counts connections to database servers, which need file descriptors: those of one database and of one organization must leave room for
 * the others.
 */
export class ServerSlots {
  readonly #limits: ServerSlotLimits
  readonly #ofDatabase = new Map<string, number>()
  readonly #ofOrganization = new Map<string, number>()
  #total = 0

  constructor(limits: ServerSlotLimits) {
    this.#limits = limits
  }

  /** Takes a slot of the database. Returns false when a limit is reached. */
  take(database: Database): boolean {
    const { databaseConnections, connectionsPerOrganization, connectionsPerDatabase } = this.#limits
    const { organization } = slugsOf(database.namespace)
    if (
      this.#total >= databaseConnections ||
      (this.#ofOrganization.get(organization) ?? 0) >= connectionsPerOrganization ||
      (this.#ofDatabase.get(database.id) ?? 0) >= connectionsPerDatabase
    )
      return false
    add(this.#ofDatabase, database.id, 1)
    add(this.#ofOrganization, organization, 1)
    this.#total += 1
    return true
  }

  /** Gives back a slot of the database. Does nothing when none is taken. */
  give(database: Database): void {
    if (!this.#ofDatabase.has(database.id)) return
    add(this.#ofDatabase, database.id, -1)
    add(this.#ofOrganization, slugsOf(database.namespace).organization, -1)
    this.#total -= 1
  }

  /** Number of slots that are taken. */
  get total(): number {
    return this.#total
  }
}

/** Adds to the count of a key. A count of zero is not kept. */
function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}
