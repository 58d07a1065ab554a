import { z } from 'zod'
import type { Namespace } from '../crds/core.ts'
import { annotations, labels } from '../crds/names.ts'
import { withMilliseconds } from './rfc3339.ts'

export const NamespaceView = z
  .object({ slug: z.string(), name: z.string(), organization: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Namespace' })

/** Renders a namespace. One that kubectl made without a display name is called by its slug. */
export function namespaceView({ metadata }: Namespace): z.output<typeof NamespaceView> {
  const slug = metadata.labels?.[labels.namespace] ?? metadata.name
  return {
    slug,
    name: metadata.annotations?.[annotations.displayName] ?? slug,
    organization: metadata.labels?.[labels.organization] ?? '',
    createdAt: withMilliseconds(metadata.creationTimestamp),
  }
}
