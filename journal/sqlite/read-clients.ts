import type { DatabaseSync } from 'node:sqlite'
import { addClients, type Clients, HOUR_MINUTES } from './client-counts.ts'

/** Creates a reader of a tunnel's requests by address, over the minutes from `first` to before `end`. */
export function createClientReader(db: DatabaseSync): (tunnel: number, first: number, end: number) => Clients {
  const hours = db.prepare('SELECT minute, clients FROM client_hours WHERE tunnel = ? AND minute >= ? AND minute < ?')
  const minutes = db.prepare('SELECT clients FROM client_minutes WHERE tunnel = ? AND minute >= ? AND minute < ?')

  return function clientsOf(tunnel, first, end) {
    const clients: Clients = new Map()
    const addMinutes = (from: number, to: number) => {
      for (const row of minutes.all(tunnel, from, to)) addClients(clients, String(row.clients))
    }
    // Reads the sums of whole hours, and the minutes between them.
    let next = first
    for (const { minute, clients: text } of hours.all(tunnel, first, end - HOUR_MINUTES + 1)) {
      addMinutes(next, Number(minute))
      addClients(clients, String(text))
      next = Number(minute) + HOUR_MINUTES
    }
    addMinutes(next, end)
    return clients
  }
}
