import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, type Resource } from './kind.ts'
import { Motor } from './motor.ts'

/** Money is a decimal string: binary floats cannot hold cents. */
const Price = z.object({
  amount: z
    .string()
    .max(24)
    .regex(/^\d+(\.\d+)?$/)
    .describe('Decimal string.'),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/)
    .max(3)
    .describe('ISO 4217 code.'),
  unit: z.string().min(1).max(32).describe('What the amount is for, e.g. `month` or `GiB-month`.'),
})

export const BILLABLE_KINDS = ['plan', 'storage', 'backup'] as const

const BillableItem = z.object({
  id: z.string().min(1).max(63),
  name: z.string().min(1).max(100),
  kind: z.enum(BILLABLE_KINDS),
  unit: z.string().min(1).max(32),
  price: Price,
})

export const PlanSpec = z.object({
  name: z.string().min(1).max(100).describe('Human-readable name.'),
  cpu: z.number().min(0.1).max(256).describe('Cores.'),
  memoryMiB: z.int().min(128).max(4_194_304),
  storageGiB: z.int().min(1).max(65_536),
  engines: z.array(Motor).min(1).max(7).describe('Motors this plan may run.'),
  price: Price,
  billableItems: z.array(BillableItem).max(16).default([]).describe('What is billed beside the plan itself.'),
})

/** The size and price of a dedicated database. */
export const Plan = defineKind({
  kind: 'Plan',
  plural: 'plans',
  shortNames: ['mplan'],
  namespaced: false,
  description: 'The size and price of a dedicated database.',
  spec: PlanSpec,
  status: z.object({ ...commonStatus }),
  columns: [
    { name: 'Cpu', type: 'string', jsonPath: '.spec.cpu' },
    { name: 'MemoryMiB', type: 'integer', jsonPath: '.spec.memoryMiB' },
    { name: 'StorageGiB', type: 'integer', jsonPath: '.spec.storageGiB' },
    AGE_COLUMN,
  ],
})
export type Plan = Resource<typeof Plan>
