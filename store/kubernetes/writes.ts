import type { Kind, Resource } from '../../crds/kind.ts'
import { backoffMs } from '../../shared/backoff.ts'
import { type Clock, pause } from '../clock.ts'
import { StoreError } from '../errors.ts'
import type { Key, Preconditions } from '../port.ts'
import type { ApiRequest, KubernetesClient } from './client.ts'
import { readObject } from './read.ts'
import { resourceOf } from './resource.ts'
import { storeErrorOf } from './status.ts'

export interface WriteDeps {
  readonly client: KubernetesClient
  readonly clock: Clock
  readonly random: () => number
}

export interface Write<K extends Kind> {
  readonly kind: K
  readonly key: Key
  /** Made anew for each try. @throws StoreError when it is clear already that the write must fail */
  readonly request: () => ApiRequest | Promise<ApiRequest>
  readonly preconditions?: Preconditions | undefined
  /**
   * The same write as the embedded store would judge it, which names every wrong field; an API server tells of unknown ones in prose.
   * Gets the object as it is now, undefined for a creation.
   */
  readonly judge: (current: Resource<K> | undefined) => unknown
}

/** Tries of a patch that other writers overtake, beyond those that the API server itself makes. */
const MOST_TRIES = 20
const BACKOFF = { baseMs: 10, maxMs: 200 }
const never = new AbortController().signal

/** Sends one write. @throws StoreError */
export async function write<K extends Kind>(deps: WriteDeps, wanted: Write<K>): Promise<Resource<K>> {
  const { kind, key } = wanted
  for (let tries = 1; ; tries += 1) {
    const request = await wanted.request()
    const answer = await deps.client.request(request)
    if (answer.status < 300) return resourceOf(kind, answer.body)
    const error = storeErrorOf(answer, { kind, ...key })
    if (error.code === 'invalid') throw await explained(deps.client, request, wanted, error)
    if (tries === MOST_TRIES || !(await isContention(deps.client, request, wanted, error))) throw error
    await pause(deps.clock, backoffMs(BACKOFF, tries, deps.random), never)
  }
}

/** Whether a conflict is none of the caller's: it named no revision, and the object is still the one it meant. */
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

/** What to say of a write that was refused as invalid. */
async function explained<K extends Kind>(
  client: KubernetesClient,
  { method }: ApiRequest,
  { kind, key, judge }: Write<K>,
  refusal: StoreError,
): Promise<StoreError> {
  const current = method === 'POST' ? undefined : await readObject(client, kind, key)
  if (method !== 'POST' && !current) return refusal
  try {
    judge(current)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return new StoreError(error.code, error.message, { cause: refusal, fields: error.fields })
  }
  return refusal
}
