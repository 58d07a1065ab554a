import { z } from 'zod'
import type { Namespace } from '../../crds/core.ts'
import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Cache } from '../../store/cache.ts'
import { createdAtOf } from '../resources/created-at.ts'
import { withMilliseconds } from '../http/rfc3339.ts'

export const NamespaceView = z
  .object({ slug: z.string(), name: z.string(), organization: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Namespace' })

/**
 * Renders a namespace. Without a display name (possible with kubectl) the name is the slug. An adopted namespace has the creation time of its
 * Namespace object.
 */
export function namespaceView(
  { metadata, spec }: TenantNamespace,
  namespaces: Pick<Cache<typeof Namespace>, 'get'>,
): z.output<typeof NamespaceView> {
  const { organization, namespace: slug, displayName: name = slug } = spec
  const made = namespaces.get({ name: metadata.name })?.metadata.creationTimestamp
  const adopted = made !== undefined && made < metadata.creationTimestamp
  return { slug, name, organization, createdAt: adopted ? withMilliseconds(made) : createdAtOf(metadata) }
}
