import type { Logger } from 'pino'
import { z } from 'zod'
import { Secret } from '../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { HeaderValue, type StoredHeaderModification, type TunnelConfig } from '../crds/tunnel-config.ts'
import { headerValuesSecret } from '../shared/edge-objects.ts'
import { COPY_ENTRY, headerReferences, literalItems, parseCopy, refText } from '../shared/header-values.ts'
import type { Store } from '../store/port.ts'
import { createFetchQueue } from './fetch-queue.ts'

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

/** The permission to read a tunnel's first values arrives within moments of the values. */
const RETRY = { baseMs: 100, maxMs: 30_000 }

export function createEdgeHeaderValues({ store, endpoint, kept, log }: EdgeHeaderValuesDeps): EdgeHeaderValues {
  const held = new Map<string, HeldValues>(kept?.all() ?? [])
  /** Headers that were complete last, by hostname. */
  const complete = new Map<string, readonly StoredHeaderModification[]>()
  const listeners = new Set<(hostname: string) => void>()
  /** Versions to fetch, by hostname. */
  const queue = createFetchQueue<string>({ retry: RETRY, what: 'header values', log, fetch })

  function want(hostname: string, version: string | undefined): void {
    if (version === undefined || held.get(hostname)?.version === version || queue.get(hostname) === version) return
    queue.put(hostname, version)
  }

  /** Copies that are missing, or of another endpoint, are fetched again: the operator may be about to write them. */
  async function fetch(hostname: string, version: string, isLatest: () => boolean): Promise<boolean> {
    const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: headerValuesSecret(hostname) })
    if (secret?.metadata.labels?.[labels.endpoint] !== endpoint) return false
    const values = parseCopy(Buffer.from(secret.data[COPY_ENTRY] ?? '', 'base64').toString('utf8'))
    if (!values || !isLatest()) return false
    const fetched = { version, values: Object.fromEntries(values) }
    held.set(hostname, fetched)
    kept?.keep(hostname, fetched)
    for (const listener of listeners) listener(hostname)
    return true
  }

  function forget(hostname: string): void {
    queue.drop(hostname)
    complete.delete(hostname)
    if (held.delete(hostname)) kept?.keep(hostname, undefined)
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
    loaded: (ms) => queue.idle(ms),
    [Symbol.dispose]: () => queue[Symbol.dispose](),
  }
}
