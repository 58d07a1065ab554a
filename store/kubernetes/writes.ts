import type { Kind, Resource } from '../../crds/kind.ts'
import { backoffMs, type Clock, pause } from '../../shared/timers.ts'
import { StoreError, type Key, type Preconditions } from '../port.ts'
import type { ApiRequest, KubernetesClient } from './client.ts'
import { objectPath, resourceOf } from './resource.ts'
import { readObject } from './reads.ts'
import { storeErrorOf } from './status.ts'

export interface WriteDeps {
  readonly client: KubernetesClient
  readonly clock: Clock
  readonly random: () => number
}

export interface Write<K extends Kind> {
  readonly kind: K
  readonly key: Key
  /** Builds the request of each attempt. @throws StoreError when the write is known to fail */
  readonly request: () => ApiRequest | Promise<ApiRequest>
  readonly preconditions?: Preconditions | undefined
  /**
   * Checks the write like the embedded store, whose error names every invalid field; an API server reports unknown fields only in prose.
   * The argument is the current object, undefined for a creation.
   */
  readonly check: (current: Resource<K> | undefined) => unknown
}

/** Maximum number of attempts of a patch that conflicts with other writers, in addition to the attempts of the API server itself. */
const MOST_TRIES = 20
const BACKOFF = { baseMs: 10, maxMs: 200 }
const never = new AbortController().signal

/** Sends a write. @throws StoreError */
export async function write<K extends Kind>(deps: WriteDeps, wanted: Write<K>): Promise<Resource<K>> {
  const { kind, key } = wanted
  for (let tries = 1; ; tries += 1) {
    const request = await wanted.request()
    const answer = await deps.client.request(request)
    if (answer.status < 300) return resourceOf(kind, answer.body)
    const error = storeErrorOf(answer, { kind, ...key, request })
    if (error.code === 'invalid') throw await explained(deps.client, request, wanted, error)
    if (tries === MOST_TRIES || !(await isContention(deps.client, request, wanted, error))) throw error
    await pause(deps.clock, backoffMs(BACKOFF, tries, deps.random), never)
  }
}

/** Whether a conflict is only with other writers: the caller named no revision, and the object still has the uid of the preconditions. */
async function isContention<K extends Kind>(
  client: KubernetesClient,
  { method }: ApiRequest,
  { kind, key, preconditions }: Write<K>,
  error: StoreError,
): Promise<boolean> {
  if (error.code !== 'conflict' || method !== 'PATCH' || preconditions?.resourceVersion !== undefined) return false
  if (preconditions?.uid === undefined) return true
  return (await readObject(client, kind, key))?.metadata.uid === preconditions.uid
}

/** Returns the error for a write that was rejected as invalid, with every invalid field if possible. */
async function explained<K extends Kind>(
  client: KubernetesClient,
  { method }: ApiRequest,
  { kind, key, check }: Write<K>,
  rejection: StoreError,
): Promise<StoreError> {
  const current = method === 'POST' ? undefined : await readObject(client, kind, key)
  if (method !== 'POST' && !current) return rejection
  try {
    check(current)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return new StoreError(error.code, error.message, { cause: rejection, fields: error.fields })
  }
  return rejection
}

/**
 * Implements `delete` of the port. Kubernetes deletes dependants in the background.
 * @throws StoreError
 */
export async function removeObject(client: KubernetesClient, kind: Kind, key: Key, preconditions: Preconditions): Promise<void> {
  const { resourceVersion, uid } = preconditions
  const conditions = { resourceVersion, uid }
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: conditions }
  const request = { method: 'DELETE', path: objectPath(kind, key), body } as const
  const answer = await client.request(request)
  if (answer.status < 300) return
  const error = storeErrorOf(answer, { kind, ...key, request })
  if (error.code !== 'conflict') throw error
  // Kubernetes answers 409 to the deletion of a Namespace that is already being deleted. The port treats that as success.
  const current = await readObject(client, kind, key)
  const isDeleting = current?.metadata.deletionTimestamp !== undefined
  if (!isDeleting || resourceVersion !== undefined || (uid !== undefined && uid !== current.metadata.uid)) throw error
}
