import { randomUUID } from 'node:crypto'
import { every } from '../every.ts'
import { createFollowers } from '../followers.ts'
import type { JournalReader, RequestRecord } from '../port.ts'
import { createBarriers } from './barriers.ts'
import { CHANNEL } from './functions.ts'
import { isUuid, lowestId } from './ids.ts'
import { createListener } from './listen.ts'
import { ignore, type LoginSource } from './login.ts'
import type { Ask } from './pool.ts'
import { requestOf } from './rows.ts'

/** The database tells of a tunnel for a minute; then somebody must have asked again. */
const RENEW_MS = 20_000
/** Notifications that wait for their requests to be read; past it those that come are left out: nobody reads so fast. */
const WAITING = 50
/** Ids that were told of, of each tunnel, and requests that are looked up after a break. */
const REMEMBERED = 5_000
const CAUGHT_UP = 1_000
/** How long a reader waits for followers to have heard what he reads. */
const SETTLE_MS = 2_000

export interface FollowingDeps {
  readonly ask: Ask
  readonly login: LoginSource
  readonly log: { warn(details: object, message: string): void }
}

export interface Following extends AsyncDisposable {
  readonly follow: JournalReader['follow']
  /** Resolves when the followers of a tunnel have heard all that was kept before the call, or after two seconds. */
  heard(tunnel: string): Promise<void>
}

interface Followed {
  /** Nothing that was kept before this is missing, in milliseconds since the epoch. */
  since: number
  readonly told: Set<string>
}

/** Tells of requests as edges ship them: the database notifies of their ids, and they are read by those. */
export function createFollowing({ ask, login, log }: FollowingDeps): Following {
  const me = randomUUID()
  const followers = createFollowers((error) => log.warn({ err: error }, 'a follower of the request log failed'))
  const followed = new Map<string, Followed>()
  let waiting = 0
  let failing = false
  let reading: Promise<void> = Promise.resolve()
  let registering: Promise<void> = Promise.resolve()

  /** Once, until it works again. */
  function failed(error: unknown): void {
    if (!failing && followed.size > 0) log.warn({ err: error }, 'the request log cannot be followed now; it is tried again')
    failing = true
  }
  const listener = createListener({ login, onPayload: hear, onListening: () => register(), onFailure: failed })
  // Notifications come in the order of their commits: this one after all that was kept by now.
  const barriers = createBarriers((token) => listener.run(`SELECT pg_notify('${CHANNEL}', $1)`, [`${me} ${token}`]))
  const renewing = every(RENEW_MS, async () => (followed.size > 0 ? register().catch(failed) : undefined))

  /** Asks for what is followed now, and reads what was kept since it was last told of. */
  function register(): Promise<void> {
    registering = registering.then(askForAll, askForAll)
    return registering
  }
  async function askForAll(): Promise<void> {
    const tunnels = [...followed.keys()]
    await listener.run('SELECT journal.follow($1::uuid[], $2)', [tunnels, me])
    failing = false
    for (const tunnel of tunnels) then(() => catchUp(tunnel))
  }

  function then(step: () => Promise<void>): void {
    reading = reading.then(step).catch(failed)
  }

  function hear(payload: string): void {
    const [tunnel = '', ...ids] = payload.split(' ')
    if (tunnel === me) then(async () => barriers.reached(ids[0] ?? ''))
    else if (followers.has(tunnel) && waiting < WAITING) {
      waiting += 1
      then(async () => {
        waiting -= 1
        await read(tunnel, 'id = ANY ($2::uuid[])', [ids])
      })
    }
  }

  async function catchUp(tunnel: string): Promise<void> {
    const state = followed.get(tunnel)
    if (!state) return
    const since = lowestId(state.since)
    state.since = Date.now()
    await read(tunnel, `id >= $2 ORDER BY id DESC LIMIT ${CAUGHT_UP}`, [since])
  }

  async function read(tunnel: string, condition: string, values: readonly unknown[]): Promise<void> {
    const rows = await ask(`SELECT * FROM journal.requests WHERE tunnel = $1 AND ${condition}`, [tunnel, ...values])
    const told = followed.get(tunnel)?.told
    if (!told) return
    const fresh = rows.map(requestOf).filter(({ id }) => !told.has(id))
    remember(told, fresh)
    followers.tell(fresh.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }

  function remember(told: Set<string>, fresh: readonly RequestRecord[]): void {
    for (const { id } of fresh) told.add(id)
    for (const id of told) {
      if (told.size <= REMEMBERED) return
      told.delete(id)
    }
  }

  async function allHeard(signal: AbortSignal): Promise<void> {
    await registering
    await barriers.pass(signal)
  }

  return {
    follow(tunnel, hearer) {
      const stop = followers.follow(tunnel, hearer)
      if (!isUuid(tunnel)) return stop
      if (!followed.has(tunnel)) {
        followed.set(tunnel, { since: Date.now(), told: new Set() })
        listener.start()
        // Where nothing listens yet, listening begins with this.
        register().catch(ignore)
      }
      return () => {
        stop()
        if (!followers.has(tunnel)) followed.delete(tunnel)
      }
    },
    async heard(tunnel) {
      if (!followed.has(tunnel)) return
      const timeout = AbortSignal.timeout(SETTLE_MS)
      await Promise.race([
        allHeard(timeout).catch(failed),
        new Promise<void>((resolve) => timeout.addEventListener('abort', () => resolve(), { once: true })),
      ])
    },
    async [Symbol.asyncDispose]() {
      await renewing[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await reading
    },
  }
}
