import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'

/** Reasons of an organization's `Ready` condition. */
export const OrganizationReason = {
  /** Namespaces can be created in the organization. An organization that is deleted while it has namespaces is created again. */
  Active: 'Active',
} as const

/** Organization. Its object name is its slug; its namespaces are the TenantNamespaces that name it. */
export const Organization = defineKind({
  kind: 'Organization',
  plural: 'organizations',
  shortNames: ['morg'],
  namespaced: false,
  description: 'Organization: the owner of namespaces.',
  spec: z.object({ name: z.string().min(1).max(100).describe('Human-readable name.') }),
  status: z.object({ ...commonStatus }),
  columns: [{ name: 'Display', type: 'string', jsonPath: '.spec.name' }, ...READY_COLUMNS, AGE_COLUMN],
})
export type Organization = Resource<typeof Organization>
