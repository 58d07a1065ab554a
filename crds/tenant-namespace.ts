import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, type Rule } from './kind.ts'
import { namespaceName, SLUG, SLUG_MAX, SLUG_RULE } from './names.ts'

/** Reasons of a tenant namespace's `Ready` condition. */
export const TenantNamespaceReason = {
  /** The Namespace exists, and its roles can be granted. */
  Bound: 'Bound',
  /** A Namespace of this name exists that Mooring does not own. It is not changed. */
  NamespaceTaken: 'NamespaceTaken',
  /** An earlier Namespace of this name is still being deleted. */
  NamespaceTerminating: 'NamespaceTerminating',
  /** The Namespace is being deleted with all objects in it. */
  Deleting: 'Deleting',
  /** An object in the Namespace cannot be cleaned up at present; the message names it. */
  CleanupBlocked: 'CleanupBlocked',
} as const

const slug = (about: string) => z.string().min(1).max(SLUG_MAX).regex(SLUG, SLUG_RULE).describe(about)

export const TenantNamespaceSpec = z.object({
  organization: slug('Slug of the organization: lower-case letters, digits and single hyphens, a letter first.'),
  namespace: slug('Slug of the namespace: lower-case letters, digits and single hyphens, a letter first.'),
  displayName: z.string().min(1).max(100).optional().describe('Display name. Default: the slug.'),
})
type Spec = z.output<typeof TenantNamespaceSpec>

/** Rule that the object name joins the two slugs. `namespace` is a CEL keyword, so CEL has it as `__namespace__`. */
const named: Rule = {
  cel: "self.metadata.name == self.spec.organization + '--' + self.spec.__namespace__",
  message: 'must be the two slugs with a double hyphen between them: organization--namespace',
  field: 'metadata.name',
  holds: ({ organization, namespace }: Spec, { name }) => name === namespaceName(organization, namespace),
}

/** Namespace of an organization. The operator creates a Kubernetes Namespace of the same name. */
export const TenantNamespace = defineKind({
  kind: 'TenantNamespace',
  plural: 'tenantnamespaces',
  shortNames: ['tns'],
  namespaced: false,
  description:
    'Namespace of an organization: a Kubernetes Namespace of the same name, and the roles in it. Deletion deletes all objects in the Namespace.',
  spec: TenantNamespaceSpec,
  status: z.object({
    ...commonStatus,
    namespaceUid: z.string().max(64).optional().describe('Uid of the Kubernetes Namespace.'),
  }),
  immutable: ['spec.organization', 'spec.namespace'],
  rules: [named],
  columns: [
    { name: 'Organization', type: 'string', jsonPath: '.spec.organization' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    ...READY_COLUMNS,
    { name: 'Display', type: 'string', jsonPath: '.spec.displayName', priority: 1 },
    AGE_COLUMN,
  ],
})
export type TenantNamespace = Resource<typeof TenantNamespace>
