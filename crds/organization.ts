import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, type Resource } from './kind.ts'

/** An organization; its object name is its slug, its namespaces are Namespaces labelled with it. */
export const Organization = defineKind({
  kind: 'Organization',
  plural: 'organizations',
  shortNames: ['morg'],
  namespaced: false,
  description: 'An organization: the owner of namespaces.',
  spec: z.object({ name: z.string().min(1).max(100).describe('Human-readable name.') }),
  status: z.object({ ...commonStatus }),
  columns: [{ name: 'Display', type: 'string', jsonPath: '.spec.name' }, AGE_COLUMN],
})
export type Organization = Resource<typeof Organization>
