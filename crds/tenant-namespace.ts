import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, type Rule } from './kind.ts'
import { namespaceName, SLUG, SLUG_MAX, SLUG_RULE } from './names.ts'

/** Reasons of a tenant namespace's `Ready` condition. */
export const TenantNamespaceReason = {
  /** The Namespace is there, and its roles can be had. */
  Bound: 'Bound',
  /** A Namespace of that name is there that is not Mooring's: it is left alone. */
  NamespaceTaken: 'NamespaceTaken',
  /** An earlier Namespace of that name is still being removed. */
  NamespaceTerminating: 'NamespaceTerminating',
  /** The Namespace is being removed with all that is in it. */
  Deleting: 'Deleting',
  /** Something in the Namespace cannot be cleaned up now; the message names it. */
  CleanupBlocked: 'CleanupBlocked',
} as const

const slug = (about: string) => z.string().min(1).max(SLUG_MAX).regex(SLUG, SLUG_RULE).describe(about)

export const TenantNamespaceSpec = z.object({
  organization: slug('Slug of the organization: lower-case letters, digits and single hyphens, a letter first.'),
  namespace: slug('Slug of the namespace within its organization, in the same form.'),
  displayName: z.string().min(1).max(100).optional().describe('What people call it; its slug when absent.'),
})
type Spec = z.output<typeof TenantNamespaceSpec>

/** `namespace` is a word of CEL itself, so the field is written between double underscores there. */
const named: Rule = {
  cel: "self.metadata.name == self.spec.organization + '--' + self.spec.__namespace__",
  message: 'must be the two slugs with a double hyphen between them: organization--namespace',
  field: 'metadata.name',
  holds: ({ organization, namespace }: Spec, { name }) => name === namespaceName(organization, namespace),
}

/** A namespace of an organization; its object name is that of the Namespace that the operator makes for it. */
export const TenantNamespace = defineKind({
  kind: 'TenantNamespace',
  plural: 'tenantnamespaces',
  shortNames: ['tns'],
  namespaced: false,
  description:
    'A namespace of an organization: the Kubernetes Namespace of the same name, with its roles. Deleting it deletes all in it.',
  spec: TenantNamespaceSpec,
  status: z.object({
    ...commonStatus,
    namespaceUid: z.string().max(64).optional().describe('Uid of the Namespace that stands for it.'),
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
