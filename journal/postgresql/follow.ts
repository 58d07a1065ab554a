import { randomUUID } from 'node:crypto'
import { every, whenAborted } from '../../shared/timers.ts'
import { createFollowers } from '../followers.ts'
import type { JournalReader, RequestRecord } from '../port.ts'
import { createBarriers, createListener } from './listen.ts'
import { CHANNEL } from './functions.ts'
import { isUuid, lowestId } from './record-format.ts'
import { ignore, type LoginSource } from './client.ts'
import type { Ask } from './pool.ts'
import { requestOf } from './read-records.ts'

/** Interval of renewals in milliseconds. The database notifies of a tunnel's requests for one minute after each. */
const RENEW_MS = 20_000
/**
 * Maximum number of notifications whose requests are not read yet. Notifications past it are ignored: no client reads so fast.
 */
const MAX_WAITING = 50
/** Number of ids remembered for each tunnel as delivered to followers, against duplicates. */
const REMEMBERED_IDS = 5_000
/** Maximum number of requests read for each tunnel after a break of the connection. */
const CATCH_UP_ROWS = 1_000
/**
 * Time in milliseconds by which reads overlap. A request whose transaction runs while a tunnel is registered causes no notification, and is
 * invisible to the first read.
 */
const OVERLAP_MS = 60_000
/** Maximum time that a search waits until followers have received what it found, in milliseconds. */
const SETTLE_MS = 2_000

export interface FollowingDeps {
  readonly ask: Ask
  readonly login: LoginSource
  readonly log: { warn(details: object, message: string): void }
}

export interface Following extends AsyncDisposable {
  readonly follow: JournalReader['follow']
  /** Resolves when the followers of a tunnel have received all requests kept before the call, or after two seconds. */
  delivered(tunnel: string): Promise<void>
}

interface Followed {
  /** Time of the first `follow`, in milliseconds since the epoch. */
  readonly from: number
  /** Time of the last read, in milliseconds since the epoch. */
  since: number
  readonly delivered: Set<string>
}

/** Delivers requests to followers as edges ship them: the database notifies of their ids, and the requests are read by id. */
export function createFollowing({ ask, login, log }: FollowingDeps): Following {
  const followerId = randomUUID()
  const followers = createFollowers((error) => log.warn({ err: error }, 'request log listener failed'))
  const followed = new Map<string, Followed>()
  let waiting = 0
  let failing = false
  let reading: Promise<void> = Promise.resolve()
  let registering: Promise<void> = Promise.resolve()

  /** Logs the first of a row of failures. */
  function failed(error: unknown): void {
    if (!failing && followed.size > 0) log.warn({ err: error }, 'request log cannot be followed; retrying')
    failing = true
  }
  const listener = createListener({ login, channel: CHANNEL, onPayload, onListening: () => register(), onFailure: failed })
  // Notifications arrive in the order of their commits: this one after all records kept by now.
  const barriers = createBarriers((token) => listener.run(`SELECT pg_notify('${CHANNEL}', $1)`, [`${followerId} ${token}`]))
  const renewing = every(RENEW_MS, async () => (followed.size > 0 ? register().catch(failed) : undefined))

  /** Registers all followed tunnels in the database, then reads the requests kept since the last delivery. */
  function register(): Promise<void> {
    registering = registering.then(registerAll, registerAll)
    return registering
  }
  async function registerAll(): Promise<void> {
    const tunnels = [...followed.keys()]
    await listener.run('SELECT journal.follow($1::uuid[], $2)', [tunnels, followerId])
    failing = false
    for (const tunnel of tunnels) enqueue(() => catchUp(tunnel))
  }

  function enqueue(step: () => Promise<void>): void {
    reading = reading.then(step).catch(failed)
  }

  function onPayload(payload: string): void {
    const [tunnel = '', ...ids] = payload.split(' ')
    if (tunnel === followerId) enqueue(async () => barriers.reached(ids[0] ?? ''))
    else if (followers.has(tunnel) && waiting < MAX_WAITING) {
      waiting += 1
      enqueue(async () => {
        waiting -= 1
        await read(tunnel, 'id = ANY ($2::uuid[])', [ids])
      })
    }
  }

  async function catchUp(tunnel: string): Promise<void> {
    const state = followed.get(tunnel)
    if (!state) return
    const since = lowestId(Math.max(state.from, state.since - OVERLAP_MS))
    state.since = Date.now()
    await read(tunnel, `id >= $2 ORDER BY id DESC LIMIT ${CATCH_UP_ROWS}`, [since])
  }

  async function read(tunnel: string, condition: string, values: readonly unknown[]): Promise<void> {
    const rows = await ask(`SELECT * FROM journal.requests WHERE tunnel = $1 AND ${condition}`, [tunnel, ...values])
    const delivered = followed.get(tunnel)?.delivered
    if (!delivered) return
    const fresh = rows.map(requestOf).filter(({ id }) => !delivered.has(id))
    remember(delivered, fresh)
    followers.notify(fresh.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }

  function remember(delivered: Set<string>, fresh: readonly RequestRecord[]): void {
    for (const { id } of fresh) delivered.add(id)
    for (const id of delivered) {
      if (delivered.size <= REMEMBERED_IDS) return
      delivered.delete(id)
    }
  }

  async function allDelivered(tunnel: string, signal: AbortSignal): Promise<void> {
    await registering
    enqueue(() => catchUp(tunnel))
    await barriers.pass(signal)
  }

  return {
    follow(tunnel, hearer) {
      const stop = followers.follow(tunnel, hearer)
      if (!isUuid(tunnel)) return stop
      if (!followed.has(tunnel)) {
        const from = Date.now()
        followed.set(tunnel, { from, since: from, delivered: new Set() })
        listener.start()
        // Fails before the first connection, which registers by itself.
        register().catch(ignore)
      }
      return () => {
        stop()
        if (!followers.has(tunnel)) followed.delete(tunnel)
      }
    },
    async delivered(tunnel) {
      if (!followed.has(tunnel)) return
      const timeout = AbortSignal.timeout(SETTLE_MS)
      await Promise.race([allDelivered(tunnel, timeout).catch(failed), whenAborted(timeout)])
    },
    async [Symbol.asyncDispose]() {
      await renewing[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await reading
    },
  }
}
