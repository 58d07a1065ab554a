import type { Logger } from 'pino'
import { z } from 'zod'
import { Secret } from '../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { HeaderValue, type StoredHeaderModification, type TunnelConfig } from '../crds/tunnel-config.ts'
import { headerValuesSecret } from '../shared/edge-objects.ts'
import { COPY_ENTRY, headerReferences, literalItems, parseCopy, refText } from '../shared/header-values.ts'
import { backoffMs } from '../shared/timers.ts'
import type { Store } from '../store/port.ts'

/** Header values of a tunnel, as the operator has copied them from Secrets of the tunnel's namespace. */
export const HeldValues = z.object({
  /** Version in the tunnel's status when the values were fetched. */
  version: z.string(),
  values: z.record(z.string(), HeaderValue),
})
export type HeldValues = Readonly<z.output<typeof HeldValues>>

/** Storage in which header values outlive the process, by the hostname of their tunnel. */
export interface HeaderValueStore {
  /** Returns the values that the previous process stored. */
  all(): ReadonlyMap<string, HeldValues>
  /** Stores values; `undefined` deletes them. */
  keep(hostname: string, held: HeldValues | undefined): void
}

export interface EdgeHeaderValuesDeps {
  readonly store: Pick<Store, 'get'>
  /** Name of the TunnelEndpoint; values of tunnels of other endpoints are ignored. */
  readonly endpoint: string
  readonly kept?: HeaderValueStore | undefined
  readonly log: Pick<Logger, 'warn'>
}

/** Header values of tunnels that come from Secrets. */
export interface EdgeHeaderValues extends Disposable {
  /**
   * Returns the config of a tunnel with literal header values. A value that is missing removes its header. While the operator has not read the
   * values of a change of the tunnel, or this edge has not fetched them, the headers are those from before the change.
   */
  readonly configOf: (tunnel: Tunnel, hostname: string) => TunnelConfig
  forget(hostname: string): void
  /** Calls `listener` with the hostname of each tunnel whose values have arrived. */
  onArrival(listener: (hostname: string) => void): void
  /** Resolves when no values are missing that the status of a tunnel announces, after `ms` milliseconds at the latest. */
  loaded(ms: number): Promise<void>
}

/** Maximum number of parallel fetches. */
const PARALLEL = 4
/** The permission to read a tunnel's first values arrives within moments of the values. */
const RETRY = { baseMs: 100, maxMs: 30_000 }

interface Fetch {
  readonly hostname: string
  readonly version: string
  readonly failures: number
}

export function createEdgeHeaderValues({ store, endpoint, kept, log }: EdgeHeaderValuesDeps): EdgeHeaderValues {
  const held = new Map<string, HeldValues>(kept?.all() ?? [])
  /** Headers that were complete last, by hostname. */
  const complete = new Map<string, readonly StoredHeaderModification[]>()
  /** Fetches to do or in progress, the latest for each hostname. */
  const wanted = new Map<string, Fetch>()
  const pending: Fetch[] = []
  const timers = new Map<string, NodeJS.Timeout>()
  const listeners = new Set<(hostname: string) => void>()
  const idle = new Set<() => void>()
  let working = 0
  let disposed = false

  function want(hostname: string, version: string | undefined): void {
    if (version === undefined || held.get(hostname)?.version === version || wanted.get(hostname)?.version === version) return
    enqueue({ hostname, version, failures: 0 })
  }

  function enqueue(fetch: Fetch): void {
    clearTimeout(timers.get(fetch.hostname))
    timers.delete(fetch.hostname)
    wanted.set(fetch.hostname, fetch)
    pending.push(fetch)
    work()
  }

  function work(): void {
    while (working < PARALLEL && !disposed) {
      const fetch = pending.shift()
      if (!fetch) break
      if (wanted.get(fetch.hostname) !== fetch) continue
      working += 1
      void run(fetch).finally(() => {
        working -= 1
        work()
      })
    }
    if (wanted.size === 0) for (const done of idle) done()
  }

  async function run(fetch: Fetch): Promise<void> {
    const { hostname, version, failures } = fetch
    const values = await fetched(hostname)
    // A newer version, or a deletion, has replaced this fetch.
    if (wanted.get(hostname) !== fetch || disposed) return
    if (!values) {
      const again = () => enqueue({ hostname, version, failures: failures + 1 })
      timers.set(hostname, setTimeout(again, backoffMs(RETRY, failures + 1, Math.random)).unref())
      return
    }
    wanted.delete(hostname)
    held.set(hostname, { version, values })
    kept?.keep(hostname, { version, values })
    for (const listener of listeners) listener(hostname)
  }

  async function fetched(hostname: string): Promise<HeldValues['values'] | undefined> {
    try {
      const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: headerValuesSecret(hostname) })
      if (secret?.metadata.labels?.[labels.endpoint] !== endpoint) return undefined
      const values = parseCopy(Buffer.from(secret.data[COPY_ENTRY] ?? '', 'base64').toString('utf8'))
      return values && Object.fromEntries(values)
    } catch (error) {
      log.warn({ err: error }, 'fetching header values failed; retrying')
      return undefined
    }
  }

  function forget(hostname: string): void {
    clearTimeout(timers.get(hostname))
    timers.delete(hostname)
    wanted.delete(hostname)
    complete.delete(hostname)
    if (held.delete(hostname)) kept?.keep(hostname, undefined)
    work()
  }

  /** Whether values of the present spec may be on their way. */
  function isUnderway({ metadata, status }: Tunnel, version: string | undefined): boolean {
    const read = status?.headerValues
    return (read?.observedGeneration ?? 0) < metadata.generation || version !== read?.version
  }

  return {
    configOf(tunnel, hostname) {
      const { config } = tunnel.spec
      const references = headerReferences(config)
      if (references.length === 0) {
        forget(hostname)
        complete.set(hostname, config.liveHeaderModifications)
        return config
      }
      want(hostname, tunnel.status?.headerValues?.version)
      const { version, values: known = {} } = held.get(hostname) ?? {}
      const values = new Map(Object.entries(known))
      const items = literalItems(config.liveHeaderModifications, values)
      const isComplete = references.every((ref) => values.has(refText(ref)))
      const former = complete.get(hostname)
      if (!isComplete && former && isUnderway(tunnel, version)) return { ...config, liveHeaderModifications: former }
      complete.set(hostname, items)
      return { ...config, liveHeaderModifications: items }
    },
    forget,
    onArrival: (listener) => void listeners.add(listener),
    async loaded(ms) {
      if (wanted.size === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, ms)
        function done(): void {
          clearTimeout(timer)
          idle.delete(done)
          resolve()
        }
        idle.add(done)
      })
    },
    [Symbol.dispose]() {
      disposed = true
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}
