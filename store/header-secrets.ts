import { createHash, randomBytes } from 'node:crypto'
import { Secret } from '../crds/core.ts'
import { ownerReferenceTo } from '../crds/kind.ts'
import { labels } from '../crds/names.ts'
import { Tunnel, HeadersUsableReason } from '../crds/tunnel.ts'
import type { SecretKeyRef } from '../crds/tunnel-config.ts'
import { MooringError } from '../shared/errors.ts'
import { headerReferences, type HeaderValues, isHeaderValue, refText, withoutLineBreak } from '../shared/header-values.ts'
import { isStoreError, type Store } from './port.ts'

/** Header values in the Secrets of a tunnel's namespace (docs/api.md, "Values of headers"). The API server and the operator write them. */

const NAME_MAX = 253

/** Name of the Secret with the header values that the REST API has taken for a tunnel. */
export function headerSecretName(tunnel: string): string {
  const name = `${tunnel}-headers`
  return name.length <= NAME_MAX ? name : `headers-${createHash('sha256').update(tunnel).digest('hex').slice(0, 40)}`
}

/** Random part of a key, 64 bits. */
export const drawKey = (): string => randomBytes(8).toString('hex')

type Reason = (typeof HeadersUsableReason)[keyof typeof HeadersUsableReason]

/** Reference without a usable value. */
export interface HeaderProblem {
  readonly ref: SecretKeyRef
  readonly reason: Reason
}

export interface ReadHeaders {
  readonly values: HeaderValues
  readonly problems: readonly HeaderProblem[]
  /** Secrets by name, those that exist. */
  readonly secrets: ReadonlyMap<string, Secret>
}

type Named = Pick<Tunnel, 'metadata' | 'spec'>

/** Reads the header values of a tunnel. @throws StoreError, but for `forbidden` */
export async function readHeaderValues(store: Pick<Store, 'get'>, { metadata, spec }: Named): Promise<ReadHeaders> {
  const references = headerReferences(spec.config)
  const names = [...new Set(references.map(({ name }) => name))]
  const found = await Promise.all(names.map((name) => secretOf(store, { namespace: metadata.namespace ?? '', name })))
  const byName = new Map(names.map((name, index) => [name, found[index]]))
  const values = new Map<string, string>()
  const problems: HeaderProblem[] = []
  for (const ref of references) {
    const { value, reason } = valueIn(byName.get(ref.name), ref.key)
    if (reason) problems.push({ ref, reason })
    else values.set(refText(ref), value)
  }
  const secrets = [...byName].flatMap(([name, secret]) => (secret && secret !== 'forbidden' ? [[name, secret] as const] : []))
  return { values, problems, secrets: new Map(secrets) }
}

type Found = Secret | 'forbidden' | undefined

async function secretOf(store: Pick<Store, 'get'>, key: { namespace: string; name: string }): Promise<Found> {
  try {
    return await store.get(Secret, key)
  } catch (error) {
    if (!isStoreError(error, 'forbidden')) throw error
    return 'forbidden'
  }
}

type Value = { readonly value: string; readonly reason?: undefined } | { readonly reason: Reason; readonly value?: undefined }

function valueIn(secret: Found, key: string): Value {
  if (secret === undefined) return { reason: HeadersUsableReason.SecretMissing }
  if (secret === 'forbidden') return { reason: HeadersUsableReason.SecretForbidden }
  const base64 = secret.data[key]
  if (base64 === undefined) return { reason: HeadersUsableReason.KeyMissing }
  const value = withoutLineBreak(Buffer.from(base64, 'base64').toString('utf8'))
  return isHeaderValue(value) ? { value } : { reason: HeadersUsableReason.InvalidValue }
}

/**
 * Adds values to a tunnel's own Secret, which is deleted with the tunnel. Call it before the tunnel refers to them.
 * @returns the Secret; undefined without values
 * @throws MooringError `secret_name_taken`; StoreError
 */
export async function addHeaderValues(
  store: Pick<Store, 'get' | 'create' | 'mergePatch'>,
  tunnel: Tunnel,
  added: Readonly<Record<string, string>>,
): Promise<Secret | undefined> {
  if (Object.keys(added).length === 0) return undefined
  const { namespace = '', name, uid } = tunnel.metadata
  const key = { namespace, name: headerSecretName(name) }
  const data = Object.fromEntries(Object.entries(added).map(([entry, value]) => [entry, Buffer.from(value).toString('base64')]))
  const found = (await store.get(Secret, key)) ?? (await created())
  if (found.metadata.ownerReferences?.some((owner) => owner.uid === uid) !== true) {
    throw new MooringError(
      'secret_name_taken',
      `a Secret of another owner has the name ${key.name}; delete or rename that Secret`,
    )
  }
  if (Object.entries(data).every(([entry, value]) => found.data[entry] === value)) return found
  return store.mergePatch(Secret, key, { data }, { uid: found.metadata.uid })

  async function created(): Promise<Secret> {
    const metadata = {
      ...key,
      labels: { [labels.managedBy]: 'mooring' },
      ownerReferences: [ownerReferenceTo(Tunnel, tunnel)],
    }
    try {
      return await store.create(Secret, { metadata, data })
    } catch (error) {
      const other = isStoreError(error, 'already_exists') ? await store.get(Secret, key) : undefined
      if (!other) throw error
      return other
    }
  }
}

/**
 * Removes the values that a tunnel does not refer to any more from its own Secret. The Secret must be as it was when this writer last saw it before
 * it wrote the tunnel: a writer that has added values since then may be about to refer to them, and one that had added values before fails
 * at the precondition of its write to the tunnel.
 */
export async function pruneHeaderValues(store: Pick<Store, 'mergePatch'>, tunnel: Tunnel, secret: Secret): Promise<void> {
  const { uid, resourceVersion, name, ownerReferences = [] } = secret.metadata
  if (!ownerReferences.some((owner) => owner.uid === tunnel.metadata.uid)) return
  const used = new Set(headerReferences(tunnel.spec.config).flatMap((ref) => (ref.name === name ? [ref.key] : [])))
  const unused = Object.keys(secret.data).filter((key) => !used.has(key))
  if (unused.length === 0) return
  const data = Object.fromEntries(unused.map((key) => [key, null]))
  try {
    await store.mergePatch(Secret, secret.metadata, { data }, { uid, resourceVersion })
  } catch (error) {
    // The next write removes them.
    if (!isStoreError(error, 'conflict') && !isStoreError(error, 'not_found')) throw error
  }
}
