import { z } from 'zod'
import type { Logger } from 'pino'
import { Secret } from '../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { Store } from '../store/port.ts'
import { createFetchQueue } from './fetch-queue.ts'

/** Certificate chain and its private key, PEM. */
export const Pem = z.object({
  certificate: z.string().min(1),
  key: z.string().min(1),
  /**
   * Time the certificate was obtained, RFC 3339 UTC, as the Tunnel's status reported it at the fetch. Empty when the status reported
   * none.
   */
  obtainedAt: z.string(),
})
export type Pem = Readonly<z.output<typeof Pem>>

/** Storage in which certificates outlive the process, by the name of their Secret. */
export interface PemStore {
  /** Returns the certificates that the previous process stored. */
  all(): ReadonlyMap<string, Pem>
  /** Stores a certificate; `undefined` deletes it. */
  keep(name: string, pem: Pem | undefined): void
}

interface Deps {
  readonly store: Pick<Store, 'get'>
  /** Name of the TunnelEndpoint; certificates of other endpoints are ignored. */
  readonly endpoint: string
  readonly kept?: PemStore | undefined
  readonly log: Pick<Logger, 'warn'>
}

/** Certificates by the name of their Secret. Each takes about 1.4 KB, so all stay in memory. */
export interface Pems extends Disposable {
  /**
   * Returns the certificate obtained at this time (empty: any time), fetched if needed. Returns the cached one when the fetch fails.
   */
  get(name: string, obtainedAt: string): Promise<Pem | undefined>
  has(name: string): boolean
  /** Returns the cached certificate, whenever it was obtained. */
  held(name: string): Pem | undefined
  /** Names of all cached certificates. */
  names(): readonly string[]
  isCurrent(name: string, obtainedAt: string): boolean
  /** Fetches a certificate in the background with retries, then calls `arrived`. Retries also when `arrived` throws. */
  fetchInBackground(name: string, obtainedAt: string, arrived: () => void): void
  /** Removes a certificate that is not usable. Its fetch in the background goes on. */
  discard(name: string): void
  /** Removes a certificate, and ends its fetch in the background. */
  forget(name: string): void
}

const RETRY = { baseMs: 1_000, maxMs: 60_000 }
/** Time in which a missing Secret is not requested again, so that handshakes cannot flood the API. */
const MISSING_MS = 300

/** Certificate to fetch in the background. */
interface Wanted {
  readonly obtainedAt: string
  readonly arrived: () => void
}

export function createPems({ store, endpoint, kept, log }: Deps): Pems {
  const held = new Map<string, Pem>(kept?.all() ?? [])
  /** By name, the time of the previous certificate: of several tunnels that share one, some report the old time for a while. */
  const before = new Map<string, string>()
  const missing = new Map<string, number>()
  /** By name, the latest fetch in progress. Results of older fetches, or of forgotten certificates, are dropped. */
  const fetching = new Map<string, symbol>()
  /** Fetches in progress for handshakes. */
  const requests = new Map<string, Promise<Pem | undefined>>()
  const queue = createFetchQueue<Wanted>({ retry: RETRY, what: 'a certificate', log, fetch: fetchWanted })

  /** A different time is a different certificate, even an earlier time: the signer's clock may be set back. */
  function isCurrent(name: string, obtainedAt: string): boolean {
    const pem = held.get(name)
    return pem !== undefined && ['', pem.obtainedAt, before.get(name)].includes(obtainedAt)
  }

  /**
   * Reads the Secret and stores its certificate.
   * @throws StoreError
   */
  async function fetch(name: string, obtainedAt: string): Promise<Pem | undefined> {
    const mine = Symbol(name)
    fetching.set(name, mine)
    let pem: Pem | undefined
    try {
      const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
      pem = secret && pemOf(secret, { endpoint, obtainedAt })
      return pem
    } finally {
      if (fetching.get(name) === mine) fetched(name, pem)
    }
  }

  function fetched(name: string, pem: Pem | undefined): void {
    fetching.delete(name)
    if (!pem) {
      missing.set(name, performance.now() + MISSING_MS)
      return
    }
    missing.delete(name)
    const former = held.get(name)
    if (former) before.set(name, former.obtainedAt)
    held.set(name, pem)
    kept?.keep(name, pem)
  }

  async function get(name: string, obtainedAt: string): Promise<Pem | undefined> {
    if (isCurrent(name, obtainedAt)) return held.get(name)
    if ((missing.get(name) ?? 0) > performance.now()) return held.get(name)
    // Handshakes at the same time share one request.
    const id = `${name} ${obtainedAt}`
    const request = requests.get(id) ?? fetchOrCached(name, obtainedAt).finally(() => requests.delete(id))
    requests.set(id, request)
    return request
  }

  async function fetchOrCached(name: string, obtainedAt: string): Promise<Pem | undefined> {
    try {
      return (await fetch(name, obtainedAt)) ?? held.get(name)
    } catch (error) {
      log.warn({ err: error }, 'fetching a certificate failed')
      return held.get(name)
    }
  }

  /** A Secret that is missing or not readable yet is fetched again, as after a failed request. */
  async function fetchWanted(name: string, { obtainedAt, arrived }: Wanted): Promise<boolean> {
    if (!isCurrent(name, obtainedAt) && !(await fetch(name, obtainedAt))) return false
    arrived()
    return true
  }

  function discard(name: string): void {
    missing.delete(name)
    before.delete(name)
    if (held.delete(name)) kept?.keep(name, undefined)
  }

  return {
    get,
    has: (name) => held.has(name),
    held: (name) => held.get(name),
    names: () => [...held.keys()],
    isCurrent,
    fetchInBackground: (name, obtainedAt, arrived) => queue.put(name, { obtainedAt, arrived }),
    discard,
    forget(name) {
      queue.drop(name)
      fetching.delete(name)
      discard(name)
    },
    [Symbol.dispose]() {
      queue[Symbol.dispose]()
      fetching.clear()
    },
  }
}

function pemOf({ metadata, data }: Secret, { endpoint, obtainedAt }: { endpoint: string; obtainedAt: string }): Pem | undefined {
  if (metadata.labels?.[labels.endpoint] !== endpoint) return undefined
  const [certificate, key] = [data['tls.crt'], data['tls.key']].map((base64) =>
    Buffer.from(base64 ?? '', 'base64').toString('utf8'),
  )
  return certificate && key ? { certificate, key, obtainedAt } : undefined
}
