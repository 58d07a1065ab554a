import type { DatabaseSync } from 'node:sqlite'
import { MINUTE_MS } from './layout.ts'

export const HOUR_MINUTES = 60

/**
 * Requests are counted by address for each minute of a tunnel, of at most so many addresses: past `MOST` those with fewest requests go, so
 * that whoever sends from a million addresses fills neither memory nor disk. The ten on top are then near the truth, below it if anything.
 */
const MOST = 256
const KEPT = 128
/** Of these so many are written. */
const WRITTEN = 64
/** Of a whole hour, which is put together from its minutes once it is over. */
const WRITTEN_OF_HOUR = 256
/** Tunnels whose counts of their newest minute are held in memory. */
const HELD_TUNNELS = 10_000

/** Requests by address. */
export type Clients = Map<string, number>

interface Seen {
  readonly tunnel: number
  readonly time: number
  readonly ip: string
}

interface Newest {
  readonly minute: number
  readonly clients: Clients
}

/** As the file has them: those with most requests first, at most `most`. */
export function clientsText(clients: Clients, most: number): string {
  const pairs = [...clients]
  return JSON.stringify(pairs.length > most ? topOf(clients, most) : pairs)
}

/** Adds counts as the file has them. */
export function addClients(clients: Clients, text: string): void {
  for (const [ip, requests] of JSON.parse(text) as [string, number][]) clients.set(ip, (clients.get(ip) ?? 0) + requests)
}

/** Those with most requests, by address where they are equal. */
export function topOf(clients: Clients, count: number): [ip: string, requests: number][] {
  return [...clients].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1)).slice(0, count)
}

export interface ClientCounts {
  /** Within a transaction. */
  add(requests: readonly Seen[]): void
  /** What was counted since the last commit does not count. */
  forget(): void
}

/** Keeps the counts of each minute in the file, and the newest one's in memory too, so that a batch writes one row a tunnel. */
export function createClientCounts(db: DatabaseSync): ClientCounts {
  const read = db.prepare('SELECT clients FROM client_minutes WHERE tunnel = ? AND minute = ?')
  const write = db.prepare('INSERT OR REPLACE INTO client_minutes (tunnel, minute, clients) VALUES (?, ?, ?)')
  const readHour = db.prepare('SELECT clients FROM client_minutes WHERE tunnel = ? AND minute >= ? AND minute < ?')
  const writeHour = db.prepare('INSERT OR REPLACE INTO client_hours (tunnel, minute, clients) VALUES (?, ?, ?)')
  const dropHour = db.prepare('DELETE FROM client_hours WHERE tunnel = ? AND minute = ?')
  const newest = new Map<number, Newest>()

  function load(tunnel: number, minute: number): Clients {
    const clients: Clients = new Map()
    const kept = read.get(tunnel, minute)
    if (kept) addClients(clients, String(kept.clients))
    return clients
  }

  /** The counts of a minute, to be added to. */
  function clientsOf(tunnel: number, minute: number): Clients {
    const held = newest.get(tunnel)
    if (held?.minute === minute) return held.clients
    const clients = load(tunnel, minute)
    if (!held || held.minute < minute) {
      if (held) closeHour(tunnel, held.minute, minute)
      if (newest.size >= HELD_TUNNELS) newest.clear()
      newest.set(tunnel, { minute, clients })
    }
    return clients
  }

  /** Reading an hour at once is what makes a week fast; one without its row is read by its minutes. */
  function closeHour(tunnel: number, before: number, now: number): void {
    const hour = hourOf(before)
    if (hour === hourOf(now)) return
    const clients: Clients = new Map()
    for (const row of readHour.all(tunnel, hour, hour + HOUR_MINUTES)) addClients(clients, String(row.clients))
    writeHour.run(tunnel, hour, clientsText(clients, WRITTEN_OF_HOUR))
  }

  function addTo(tunnel: number, minute: number, ips: readonly string[]): void {
    const held = newest.get(tunnel)
    // Its hour may have been put together already, by this process or a former one: the sum is not true any more.
    if (!held || hourOf(held.minute) !== hourOf(minute)) dropHour.run(tunnel, hourOf(minute))
    const clients = clientsOf(tunnel, minute)
    for (const ip of ips) clients.set(ip, (clients.get(ip) ?? 0) + 1)
    if (clients.size > MOST) for (const [ip] of topOf(clients, clients.size).slice(KEPT)) clients.delete(ip)
    write.run(tunnel, minute, clientsText(clients, WRITTEN))
  }

  return {
    add(requests) {
      const groups = new Map<string, { readonly tunnel: number; readonly minute: number; readonly ips: string[] }>()
      let group: { readonly tunnel: number; readonly minute: number; readonly ips: string[] } | undefined
      for (const { tunnel, time, ip } of requests) {
        const minute = Math.floor(time / MINUTE_MS)
        // Mostly it is that of the request before.
        if (group?.tunnel !== tunnel || group.minute !== minute) {
          const key = `${tunnel} ${minute}`
          group = groups.get(key) ?? { tunnel, minute, ips: [] }
          groups.set(key, group)
        }
        group.ips.push(ip)
      }
      for (const { tunnel, minute, ips } of groups.values()) addTo(tunnel, minute, ips)
    },
    forget: () => newest.clear(),
  }
}

const hourOf = (minute: number): number => Math.floor(minute / HOUR_MINUTES) * HOUR_MINUTES
