import { join } from 'node:path'
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Kind, Resource } from '../../crds/kind.ts'
import { keyToString, type ListResult, type Store, type WatchEvent } from '../../store/port.ts'
import { resourceOf } from '../../store/kubernetes/resource.ts'
import { HeldValues, type HeaderValueStore } from '../header-values.ts'
import { Pem, type PemStore } from '../pems.ts'
import { openLogFile } from './log-file.ts'
import { EndpointSlice } from '../../crds/core.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'

export interface SnapshotDeps {
  readonly store: Store
  /** Name of the TunnelEndpoint that is served. */
  readonly endpoint: string
  /** Directory of the snapshot file, which contains private keys. */
  readonly directory: string
  readonly log: Pick<Logger, 'warn' | 'info'>
  /** Maximum wait for the first list when the snapshot can replace it, in milliseconds. */
  readonly patienceMs?: number
  readonly everyMs?: number
}

/** State that an edge served last, for a start without the API. */
export interface Snapshot extends AsyncDisposable {
  /**
   * The given store, whose first list of each kind comes from the snapshot while the API is away. A watch continues from there once the
   * API is back, so that no change is missed.
   */
  readonly store: Store
  readonly pems: PemStore
  readonly headerValues: HeaderValueStore
  flush(): Promise<void>
}

const PATIENCE_MS = 3_000
const FILE = 'snapshot'
const PEM = 'pem/'
const HEADERS = 'headers/'

interface Known {
  readonly kind: Kind
  readonly objects: Map<string, Resource<Kind>>
  /** Hash of each object as it was written; empty for objects of the previous process. */
  readonly hashes: Map<string, string>
  revision: string
  /** Whether a list has arrived; until then the objects of the previous process count. */
  fresh: boolean
}

/** Reads the snapshot in the directory. From then on writes changes to it within 100 ms. */
export async function openSnapshot(deps: SnapshotDeps): Promise<Snapshot> {
  const { store, endpoint, directory, log, patienceMs = PATIENCE_MS } = deps
  const known = new Map(
    KEPT_KINDS.map((kind): [string, Known] => [
      kind.kind,
      { kind, objects: new Map(), hashes: new Map(), revision: '', fresh: false },
    ]),
  )
  const pems = new Map<string, Pem>()
  const headerValues = new Map<string, HeldValues>()
  const title = `what edge of ${endpoint} serves, 1`
  const file = await openLogFile({
    path: join(directory, FILE),
    title,
    live,
    log,
    ...(deps.everyMs && { everyMs: deps.everyMs }),
  })
  for (const [id, value] of file.found) {
    const slash = id.indexOf('/')
    if (id.startsWith(PEM)) take(Pem, pems, id.slice(PEM.length), value)
    else if (id.startsWith(HEADERS)) take(HeldValues, headerValues, id.slice(HEADERS.length), value)
    else known.get(id.slice(0, slash))?.hashes.set(id.slice(slash + 1), '')
  }

  function* live(): Generator<readonly [string, unknown]> {
    for (const state of known.values()) yield* state.fresh ? current(state) : left(state.kind)
    for (const [name, pem] of pems) yield [PEM + name, pem]
    for (const [hostname, values] of headerValues) yield [HEADERS + hostname, values]
  }

  function* current({ kind, objects, revision }: Known): Generator<readonly [string, unknown]> {
    for (const [key, object] of objects) {
      const kept = keptOf(object, endpoint)
      if (kept) yield [`${kind.kind}/${key}`, kept]
    }
    // After the objects: they are at least as new as this revision.
    yield [revisionId(kind), revision]
  }

  /** Returns what the previous process wrote for a kind: a copy, because entries may be deleted during the write. */
  const left = (kind: Kind) => [...file.found].filter(([id]) => id.startsWith(`${kind.kind}/`) || id === revisionId(kind))

  function put(state: Known, object: Resource<Kind>): void {
    const key = keyToString(object.metadata)
    state.objects.set(key, object)
    const kept = keptOf(object, endpoint)
    const hash = kept && hashOf(kept)
    if (hash === state.hashes.get(key)) return
    if (hash === undefined) state.hashes.delete(key)
    else state.hashes.set(key, hash)
    file.set(`${state.kind.kind}/${key}`, kept)
  }

  function remove(state: Known, key: string): void {
    state.objects.delete(key)
    if (state.hashes.delete(key)) file.set(`${state.kind.kind}/${key}`, undefined)
  }

  function onList<K extends Kind>(state: Known, { items, resourceVersion }: ListResult<K>): void {
    const keys = new Set(items.map(({ metadata }) => keyToString(metadata)))
    for (const key of [...state.objects.keys(), ...state.hashes.keys()]) if (!keys.has(key)) remove(state, key)
    for (const item of items) put(state, item)
    onRevision(state, resourceVersion)
    state.fresh = true
    if ([...known.values()].every(({ fresh }) => fresh)) file.found.clear()
  }

  function onEvent(state: Known, event: WatchEvent<Kind>): void {
    if (event.type === 'deleted') remove(state, keyToString(event.object.metadata))
    else if (event.type !== 'bookmark') put(state, event.object)
    onRevision(state, event.type === 'bookmark' ? event.resourceVersion : event.object.metadata.resourceVersion)
  }

  function onRevision(state: Known, revision: string): void {
    state.revision = revision
    file.set(revisionId(state.kind), revision)
  }

  function savedList(kind: Kind): ListResult<Kind> | undefined {
    const revision = file.found.get(revisionId(kind))
    if (typeof revision !== 'string' || revision === '') return isAddedSince(kind) ? NOTHING : undefined
    const items = [...file.found].flatMap(([id, value]) => (id.startsWith(`${kind.kind}/`) ? objectOf(kind, value) : []))
    return { items, resourceVersion: revision }
  }

  /** Whether the snapshot is of a version of this program without this kind. */
  const isAddedSince = (kind: Kind) => kind === DedicatedDatabase && Boolean(file.found.get(revisionId(Tunnel)))

  async function list<K extends Kind>(kind: K, options?: Parameters<Store['list']>[1]): Promise<ListResult<K>> {
    const state = known.get(kind.kind)
    if (!state) return store.list(kind, options)
    const saved = state.fresh ? undefined : savedList(kind)
    try {
      const asked = store.list(kind, options)
      const result = await (saved ? within(asked, patienceMs) : asked)
      onList(state, result)
      return result
    } catch (error) {
      if (!saved) throw error
      log.warn({ err: error, kind: kind.kind, objects: saved.items.length }, 'the API does not answer; serving the last snapshot')
      onList(state, saved)
      return saved
    }
  }

  /** Storage of values in memory and in the file, under a prefix of their ids. */
  const stored = <T>(prefix: string, values: Map<string, T>) => ({
    all: () => values,
    keep(name: string, value: T | undefined) {
      if (value === undefined) values.delete(name)
      else values.set(name, value)
      file.set(prefix + name, value)
    },
  })

  return {
    store: {
      ...store,
      list,
      async *watch(kind, options) {
        const state = known.get(kind.kind)
        for await (const event of store.watch(kind, options)) {
          if (state) onEvent(state, event)
          yield event
        }
      },
    },
    pems: stored(PEM, pems),
    headerValues: stored(HEADERS, headerValues),
    flush: () => file.flush(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

function take<T>(schema: z.ZodType<T>, into: Map<string, T>, name: string, value: unknown): void {
  const { data } = schema.safeParse(value)
  if (data !== undefined) into.set(name, data)
}

/** List without objects. No watch can start at its revision, so the API is asked for a list first. */
const NOTHING: ListResult<Kind> = { items: [], resourceVersion: '' }

const revisionId = ({ kind }: Kind): string => `revision/${kind}`

/** Hashes an object without its resourceVersion: a new revision alone is no change. */
function hashOf(kept: object): string {
  const text = JSON.stringify(kept, (name, value: unknown) => (name === 'resourceVersion' ? undefined : value))
  return createHash('sha1').update(text).digest('base64')
}

function objectOf(kind: Kind, value: unknown): readonly Resource<Kind>[] {
  try {
    return [resourceOf(kind, value)]
  } catch (error) {
    // The object may be of another version of this program.
    if (error instanceof z.ZodError) return []
    throw error
  }
}

/**
 * Waits at most `ms` milliseconds.
 * @throws Error on a timeout
 */
function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Kinds of resources that an edge needs. */
export const KEPT_KINDS: readonly Kind[] = [TunnelEndpoint, Tunnel, DedicatedDatabase, TunnelPassword, EndpointSlice]

/**
 * Returns the part of an object that an edge uses; undefined for objects of other endpoints. Changes of other parts are not written.
 * Pure.
 */
export function keptOf(object: Resource<Kind>, endpoint: string): object | undefined {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = object.metadata
  const metadata = { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp }
  if (object.kind === Tunnel.kind) {
    const { spec, status } = object as Tunnel
    if (status?.endpointRef?.name !== endpoint) return undefined
    const { hostname, endpointRef, certificate, headerValues } = status
    return { metadata, spec, status: { hostname, endpointRef, certificate, headerValues } }
  }
  if (object.kind === DedicatedDatabase.kind) {
    const { spec, status } = object as DedicatedDatabase
    if (status?.sshTunnel?.endpointRef.name !== endpoint) return undefined
    const { motor, region, plan, sshTunnel } = spec
    return { metadata, spec: { motor, region, plan, sshTunnel }, status: { sshTunnel: status.sshTunnel } }
  }
  if (object.kind === EndpointSlice.kind) {
    const { addressType, endpoints, ports } = object as EndpointSlice
    return { metadata: { ...metadata, labels: object.metadata.labels }, addressType, endpoints, ports }
  }
  // A password names its tunnel by its owner reference.
  const { ownerReferences } = object.metadata
  return { metadata: { ...metadata, ownerReferences }, spec: (object as TunnelPassword | TunnelEndpoint).spec }
}
