import type { DatabaseSync } from 'node:sqlite'
import { MINUTE_MS } from '../search.ts'

export const HOUR_MINUTES = 60

/**
 * Maximum number of addresses counted in memory for a minute of a tunnel. Past it only the `KEPT_ADDRESSES` addresses with most requests
 * stay, so that traffic from a million addresses fills neither memory nor disk. The counts of the top ten are close to the truth,
 * and never above it.
 */
const HELD_ADDRESSES = 256
const KEPT_ADDRESSES = 128
/** Maximum number of addresses written for a minute. */
const MINUTE_ADDRESSES = 64
/** Maximum number of addresses written for an hour, which is summed up from its minutes once it is over. */
const HOUR_ADDRESSES = 256
/** Maximum number of tunnels whose newest minute is held in memory. */
const HELD_TUNNELS = 10_000

/** Number of requests by address. */
type Clients = Map<string, number>

interface Seen {
  readonly tunnel: number
  readonly time: number
  readonly ip: string
}

interface Newest {
  readonly minute: number
  readonly clients: Clients
}

export interface ClientCounts {
  /** Counts requests. Call it within a transaction. */
  add(requests: readonly Seen[]): void
  /** Discards the counts in memory, after a rollback. */
  forget(): void
}

/**
 * Creates the counts. The file has those of each minute; memory also has those of the newest, so that a batch writes one row for
 * each tunnel.
 */
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

  /** Returns the counts of a minute, which the caller may change. */
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

  /**
   * Writes the sum of an hour that is over. Reading whole hours makes the statistics of a week fast; an hour without its sum is
   * read by minutes.
   */
  function closeHour(tunnel: number, before: number, now: number): void {
    const hour = hourOf(before)
    if (hour === hourOf(now)) return
    const clients: Clients = new Map()
    for (const row of readHour.all(tunnel, hour, hour + HOUR_MINUTES)) addClients(clients, String(row.clients))
    writeHour.run(tunnel, hour, clientsText(clients, HOUR_ADDRESSES))
  }

  function addTo(tunnel: number, minute: number, ips: readonly string[]): void {
    const held = newest.get(tunnel)
    // The hour may have a sum already, from this or an earlier process: the sum is outdated now.
    if (!held || hourOf(held.minute) !== hourOf(minute)) dropHour.run(tunnel, hourOf(minute))
    const clients = clientsOf(tunnel, minute)
    for (const ip of ips) clients.set(ip, (clients.get(ip) ?? 0) + 1)
    if (clients.size > HELD_ADDRESSES) for (const [ip] of topOf(clients, clients.size).slice(KEPT_ADDRESSES)) clients.delete(ip)
    write.run(tunnel, minute, clientsText(clients, MINUTE_ADDRESSES))
  }

  return {
    add(requests) {
      const groups = new Map<string, { readonly tunnel: number; readonly minute: number; readonly ips: string[] }>()
      let group: { readonly tunnel: number; readonly minute: number; readonly ips: string[] } | undefined
      for (const { tunnel, time, ip } of requests) {
        const minute = Math.floor(time / MINUTE_MS)
        // Mostly it is the previous request's group.
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

/** Returns the `count` addresses with most requests; equal ones are sorted by address. */
export function topOf(clients: Clients, count: number): [ip: string, requests: number][] {
  return [...clients].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1)).slice(0, count)
}

/** Formats counts for the file: at most `most` addresses, those with most requests. */
function clientsText(clients: Clients, most: number): string {
  const pairs = [...clients]
  return JSON.stringify(pairs.length > most ? topOf(clients, most) : pairs)
}

/** Adds counts in the format of the file. */
function addClients(clients: Clients, text: string): void {
  for (const [ip, requests] of JSON.parse(text) as [string, number][]) clients.set(ip, (clients.get(ip) ?? 0) + requests)
}

const hourOf = (minute: number): number => Math.floor(minute / HOUR_MINUTES) * HOUR_MINUTES
