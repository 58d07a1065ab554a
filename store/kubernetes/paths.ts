import type { Kind } from '../../crds/kind.ts'

const enc = encodeURIComponent

/** Returns the path of a collection: `/apis/mooring.dev/v1alpha1/namespaces/acme--prod/sharedinstances`; without a namespace, of all namespaces. */
export function collectionPath({ group, version, plural, namespaced }: Kind, namespace?: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespaced && namespace !== undefined ? `${root}/namespaces/${enc(namespace)}/${plural}` : `${root}/${plural}`
}

/** Returns the path of an object, or of its `status` subresource. */
export function objectPath(
  kind: Kind,
  key: { readonly namespace?: string | undefined; readonly name: string },
  subresource?: 'status',
): string {
  return `${collectionPath(kind, key.namespace)}/${enc(key.name)}${subresource === undefined ? '' : `/${subresource}`}`
}

/** Returns a label selector: `a=1,b=2`; undefined without labels. */
export function labelSelector(labels: Readonly<Record<string, string>> = {}): string | undefined {
  const all = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  return all.length === 0 ? undefined : all.join(',')
}
