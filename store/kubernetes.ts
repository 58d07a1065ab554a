import type { ClusterConfig } from './kubernetes/cluster-config.ts'
import { z } from 'zod'
import { isFields } from '../crds/formats/fields.ts'
import { apiVersionOf, type Draft, type Kind, type Resource } from '../crds/kind.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Stored } from './embedded/object.ts'
import { created, patched, replaced, requireMatch, statusPatched } from './embedded/operations.ts'
import { StoreError } from './errors.ts'
import { type ApiRequest, createKubernetesClient, type KubernetesClient, type KubernetesClientDeps } from './kubernetes/client.ts'
import { listKind } from './kubernetes/lists.ts'
import { collectionPath, objectPath } from './kubernetes/paths.ts'
import { readObject } from './kubernetes/read.ts'
import { removeObject } from './kubernetes/remove.ts'
import { watchKind } from './kubernetes/watch.ts'
import { write } from './kubernetes/writes.ts'
import type { Key, ListOptions, Patch, Preconditions, Store, WatchOptions } from './port.ts'

export interface KubernetesStoreDeps extends KubernetesClientDeps {
  /** Which API server, and as whom: see loadClusterConfig. Rotated tokens are taken up. */
  readonly config: ClusterConfig
  /** Whose writes these are in `managedFields`. Default `mooring`. */
  readonly fieldManager?: string
  /** A watch that brings nothing for so long is broken off; an API server sends a bookmark each minute. Default 150,000. */
  readonly silentMs?: number
  readonly clock?: Clock
  readonly random?: () => number
}

/** A Store in a Kubernetes API server. */
export interface KubernetesStore extends Store, AsyncDisposable {
  /** For calls beside the port, over the same connection. */
  readonly client: KubernetesClient
  /** Breaks off what is under way and closes the connection. */
  close(): Promise<void>
}

type Timing = Pick<KubernetesStoreDeps, 'clock' | 'random'>

interface PatchOf {
  readonly body: Patch
  readonly preconditions: Preconditions
  readonly subresource?: 'status'
  readonly judge: (current: Stored) => unknown
}

const MERGE_PATCH = 'application/merge-patch+json'

/**
 * Makes the store of the cluster home; connects when it is first used. It is as fresh as the API server: reads are consistent ones.
 * Where an answer never came (`unavailable`), a write may have been done all the same.
 * @throws MooringError `invalid_settings` when the config names no API server
 */
export function createKubernetesStore(deps: KubernetesStoreDeps): KubernetesStore {
  return createStoreOver(createKubernetesClient(deps), deps)
}

/** {@link createKubernetesStore} over a client that is there already; `close` closes that one. */
export function createStoreOver(
  client: KubernetesClient,
  deps: Omit<KubernetesStoreDeps, keyof KubernetesClientDeps> & Timing,
): KubernetesStore {
  const { fieldManager = 'mooring', clock = systemClock, random = Math.random, silentMs = 150_000 } = deps
  const query = { fieldValidation: 'Strict', fieldManager }
  const writing = { client, clock, random }

  function patch<K extends Kind>(kind: K, key: Key, change: PatchOf): Promise<Resource<K>> {
    const { body, preconditions, subresource, judge } = change
    const path = objectPath(kind, key, subresource)
    async function request(): Promise<ApiRequest> {
      const metadata = { ...(isFields(body.metadata) ? body.metadata : {}), ...preconditionsOf(preconditions) }
      // Of a status patch an API server ignores the uid.
      if (subresource) metadata.resourceVersion ??= await revisionOf(client, kind, key, preconditions.uid)
      return { method: 'PATCH', path, query, contentType: MERGE_PATCH, body: { ...body, metadata } }
    }
    function judgeNow(current: Resource<K> | undefined): void {
      if (!current) return
      // A patch that holds another uid is refused because it would change the uid.
      requireMatch(stored(current), { uid: preconditions.uid })
      judge(stored(current))
    }
    return write(writing, { kind, key, request, preconditions, judge: judgeNow })
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
      const judge = () => created(kind, draft, { uid: '', now: '' })
      return wellFormed(write(writing, { kind, key: draft.metadata, request, judge }))
    },
    replace<K extends Kind>(kind: K, object: Resource<K>) {
      const key = object.metadata
      const request = (): ApiRequest => ({ method: 'PUT', path: objectPath(kind, key), query, body: object })
      const judge = (current: Resource<K> | undefined) => current && replaced(kind, stored(current), object)
      return wellFormed(write(writing, { kind, key, request, preconditions: key, judge }))
    },
    mergePatch(kind, key, wanted: Patch, preconditions = {}) {
      const body = Object.fromEntries(Object.entries(wanted).filter(([field]) => field !== 'status'))
      const judge = (current: Stored) => patched(kind, current, body)
      return wellFormed(patch(kind, key, { body, preconditions, judge }))
    },
    patchStatus(kind, key, status: object, preconditions = {}) {
      const judge = (current: Stored) => statusPatched(kind, current, status)
      return wellFormed(patch(kind, key, { body: { status }, subresource: 'status', preconditions, judge }))
    },
    delete: (kind, key, preconditions = {}) => wellFormed(removeObject(client, kind, key, preconditions)),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

const stored = (object: Resource<Kind>): Stored => object

/** Inside a patch they are compared, not set. Callers may hand over whole metadata: nothing else of it counts. */
const preconditionsOf = ({ resourceVersion, uid }: Preconditions): Preconditions => ({ resourceVersion, uid })

/** The revision of the object of this uid, undefined when none was named. @throws StoreError `not_found`, `conflict` */
async function revisionOf(client: KubernetesClient, kind: Kind, key: Key, uid: string | undefined): Promise<string | undefined> {
  if (uid === undefined) return undefined
  const current = await readObject(client, kind, key)
  if (!current) throw new StoreError('not_found', `${kind.kind} ${key.name} does not exist`)
  requireMatch(stored(current), { uid })
  return current.metadata.resourceVersion
}

/** An answer that is no object of Kubernetes comes from something that stands between. */
async function wellFormed<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    throw new StoreError('unavailable', 'what answers is no Kubernetes API server', { cause: error })
  }
}
