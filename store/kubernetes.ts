import { z } from 'zod'
import type { ClusterConfig } from './kubernetes/credentials.ts'
import { isFields } from '../crds/formats/fields.ts'
import { apiVersionOf, type Draft, type Kind, type Resource } from '../crds/kind.ts'
import { type Clock, systemClock } from '../shared/timers.ts'
import type { Stored } from './embedded/table.ts'
import { created, patched, replaced, requireMatch, statusPatched } from './embedded/operations.ts'
import { StoreError, type Key, type ListOptions, type Patch, type Preconditions, type Store, type WatchOptions } from './port.ts'
import { type ApiRequest, createKubernetesClient, type KubernetesClient, type KubernetesClientDeps } from './kubernetes/client.ts'
import { collectionPath, objectPath } from './kubernetes/resource.ts'
import { listKind, readObject } from './kubernetes/reads.ts'
import { watchKind } from './kubernetes/watch.ts'
import { removeObject, write } from './kubernetes/writes.ts'

export interface KubernetesStoreDeps extends KubernetesClientDeps {
  /** API server and credentials; see loadClusterConfig. Rotated tokens are read again. */
  readonly config: ClusterConfig
  /** Field manager in `managedFields`. Default `mooring`. */
  readonly fieldManager?: string
  /** Time without data after which a watch is closed, in milliseconds; an API server sends a bookmark each minute. Default 150,000. */
  readonly silentMs?: number
  readonly clock?: Clock
  readonly random?: () => number
}

/** Store in a Kubernetes API server. */
export interface KubernetesStore extends Store, AsyncDisposable {
  /** Client for calls outside of the port, over the same connection. */
  readonly client: KubernetesClient
  /** Aborts calls in progress and closes the connection. */
  close(): Promise<void>
}

type Timing = Pick<KubernetesStoreDeps, 'clock' | 'random'>

interface PatchOf {
  readonly body: Patch
  readonly preconditions: Preconditions
  readonly subresource?: 'status'
  readonly check: (current: Stored) => unknown
}

const MERGE_PATCH = 'application/merge-patch+json'

/**
 * Creates the store of cluster mode, which connects at its first use. Reads are consistent: they return the newest state.
 * A write that fails with `unavailable` may have been carried out, because the response may have been lost.
 * @throws MooringError `invalid_settings` when the config names no API server
 */
export function createKubernetesStore(deps: KubernetesStoreDeps): KubernetesStore {
  return createStoreOver(createKubernetesClient(deps), deps)
}

/** Creates the store over an existing client; `close` closes the client. */
export function createStoreOver(
  client: KubernetesClient,
  deps: Omit<KubernetesStoreDeps, keyof KubernetesClientDeps> & Timing,
): KubernetesStore {
  const { fieldManager = 'mooring', clock = systemClock, random = Math.random, silentMs = 150_000 } = deps
  const query = { fieldValidation: 'Strict', fieldManager }
  const writing = { client, clock, random }

  function patch<K extends Kind>(kind: K, key: Key, change: PatchOf): Promise<Resource<K>> {
    const { body, preconditions, subresource, check } = change
    const path = objectPath(kind, key, subresource)
    async function request(): Promise<ApiRequest> {
      const metadata = { ...(isFields(body.metadata) ? body.metadata : {}), ...preconditionsOf(preconditions) }
      // API servers ignore the uid in a status patch.
      if (subresource) metadata.resourceVersion ??= await revisionOf(client, kind, key, preconditions.uid)
      return { method: 'PATCH', path, query, contentType: MERGE_PATCH, body: { ...body, metadata } }
    }
    function checkNow(current: Resource<K> | undefined): void {
      if (!current) return
      // An API server rejects a patch with another uid because the patch would change the uid.
      requireMatch(stored(current), { uid: preconditions.uid })
      check(stored(current))
    }
    return write(writing, { kind, key, request, preconditions, check: checkNow })
  }

  return {
    client,
    get: (kind, key) => wellFormed(readObject(client, kind, key)),
    list: (kind, options: ListOptions = {}) => wellFormed(listKind(client, kind, options)),
    watch: (kind, options: WatchOptions) => watchKind({ client, random, silentMs }, kind, options),
    create<K extends Kind>(kind: K, draft: Draft<K>) {
      const body = { ...draft, apiVersion: apiVersionOf(kind), kind: kind.kind }
      const path = collectionPath(kind, draft.metadata.namespace)
      const request = (): ApiRequest => ({ method: 'POST', path, query, body })
      const check = () => created(kind, draft, { uid: '', now: '' })
      return wellFormed(write(writing, { kind, key: draft.metadata, request, check }))
    },
    replace<K extends Kind>(kind: K, object: Resource<K>) {
      const key = object.metadata
      const request = (): ApiRequest => ({ method: 'PUT', path: objectPath(kind, key), query, body: object })
      const check = (current: Resource<K> | undefined) => current && replaced(kind, stored(current), object)
      return wellFormed(write(writing, { kind, key, request, preconditions: key, check }))
    },
    mergePatch(kind, key, change: Patch, preconditions = {}) {
      const body = Object.fromEntries(Object.entries(change).filter(([field]) => field !== 'status'))
      const check = (current: Stored) => patched(kind, current, body)
      return wellFormed(patch(kind, key, { body, preconditions, check }))
    },
    patchStatus(kind, key, status: object, preconditions = {}) {
      const check = (current: Stored) => statusPatched(kind, current, status)
      return wellFormed(patch(kind, key, { body: { status }, subresource: 'status', preconditions, check }))
    },
    delete: (kind, key, preconditions = {}) => wellFormed(removeObject(client, kind, key, preconditions)),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

const stored = (object: Resource<Kind>): Stored => object

/** Returns only the preconditions of an argument that may be whole metadata. Inside a patch, an API server compares them. */
const preconditionsOf = ({ resourceVersion, uid }: Preconditions): Preconditions => ({ resourceVersion, uid })

/** Returns the revision of the object with this uid; undefined without a uid. @throws StoreError `not_found`, `conflict` */
async function revisionOf(client: KubernetesClient, kind: Kind, key: Key, uid: string | undefined): Promise<string | undefined> {
  if (uid === undefined) return undefined
  const current = await readObject(client, kind, key)
  if (!current) throw new StoreError('not_found', `${kind.kind} ${key.name} does not exist`)
  requireMatch(stored(current), { uid })
  return current.metadata.resourceVersion
}

/** Converts parse errors: a response that is not a Kubernetes object comes from a proxy, not from the API server. */
async function wellFormed<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    throw new StoreError('unavailable', 'the response is not from a Kubernetes API server', { cause: error })
  }
}
