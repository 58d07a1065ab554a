import type { ObjectMeta } from '../crds/kind.ts'
import type { Key } from './port.ts'

/** Formats a key: `acme--prod/pr-1`, or `local` for a cluster-scoped object. Names contain no slash. */
export function keyToString({ namespace, name }: Key): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** Parses the result of {@link keyToString}. */
export function keyFromString(text: string): Key {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

export function keyOf({ metadata }: { readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'> }): Key {
  return metadata.namespace === undefined ? { name: metadata.name } : { namespace: metadata.namespace, name: metadata.name }
}
