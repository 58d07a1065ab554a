import { z } from 'zod'
import type { TenantNamespace } from '../crds/tenant-namespace.ts'
import { withMilliseconds } from './rfc3339.ts'

export const NamespaceView = z
  .object({ slug: z.string(), name: z.string(), organization: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Namespace' })

/** Renders a namespace. One that kubectl made without a display name is called by its slug. */
export function namespaceView({ metadata, spec }: TenantNamespace): z.output<typeof NamespaceView> {
  const { organization, namespace: slug, displayName: name = slug } = spec
  return { slug, name, organization, createdAt: withMilliseconds(metadata.creationTimestamp) }
}
