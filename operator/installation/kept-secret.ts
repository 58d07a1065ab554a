import { Secret } from '../../crds/core.ts'
import type { DraftMeta } from '../../crds/kind.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { isStoreError, StoreCode, type Store } from '../../store/port.ts'
import { encodeSecret } from '../secret-data.ts'

type Texts = Readonly<Record<string, string>>
/** Further metadata of a Secret. */
type About = Pick<DraftMeta, 'labels' | 'ownerReferences'>

/**
 * Returns the texts of a Secret in mooring-system, created from `make` the first time. If two callers create it at once, both get the first
 * one's texts. Missing labels and owners of `about` are added to an existing Secret.
 */
export async function keptSecret(store: Store, name: string, make: () => Promise<Texts>, about: About = {}): Promise<Texts> {
  const key = { namespace: SYSTEM_NAMESPACE, name }
  const found = await store.get(Secret, key)
  if (found) return texts(await marked(store, found, about))
  try {
    return texts(await store.create(Secret, { metadata: { ...key, ...about }, data: encodeSecret(await make()) }))
  } catch (error) {
    const other = isStoreError(error, StoreCode.alreadyExists) ? await store.get(Secret, key) : undefined
    if (!other) throw error
    return texts(other)
  }
}

function marked(store: Store, found: Secret, { labels = {}, ownerReferences = [] }: About): Promise<Secret> | Secret {
  const { metadata } = found
  const isLabelled = Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value)
  const isOwned = ownerReferences.every(({ uid }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))
  if (isLabelled && isOwned) return found
  return store.mergePatch(Secret, metadata, { metadata: { labels, ...(!isOwned && { ownerReferences }) } })
}

/** Replaces texts of a Secret created by {@link keptSecret}. */
export async function keepSecret(store: Store, name: string, values: Texts): Promise<void> {
  await store.mergePatch(Secret, { namespace: SYSTEM_NAMESPACE, name }, { data: encodeSecret(values) })
}

/** Restores a Secret that held `values` if it was deleted or lacks one of them. @returns whether it was restored */
export async function restoreSecret(store: Store, name: string, values: Texts): Promise<boolean> {
  const found = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
  if (found && Object.keys(values).every((entry) => (texts(found)[entry] ?? '') !== '')) return false
  await keptSecret(store, name, async () => values)
  await keepSecret(store, name, values)
  return true
}

const texts = ({ data }: Secret): Texts =>
  Object.fromEntries(Object.entries(data).map(([key, base64]) => [key, Buffer.from(base64, 'base64').toString('utf8')]))
