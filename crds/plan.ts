import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { Motor } from './motor.ts'

/** Price; the amount is a decimal string because binary floats cannot represent cents. */
const Price = z.object({
  amount: z
    .string()
    .max(24)
    .regex(/^\d+(\.\d+)?$/, 'must be a decimal number such as 12.50')
    .describe('Decimal string.'),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be a currency code of three capital letters, such as EUR')
    .max(3)
    .describe('ISO 4217 code.'),
  unit: z.string().min(1).max(32).describe('Unit that the amount is for, e.g. `month` or `GiB-month`.'),
})

export const BILLABLE_KINDS = ['plan', 'storage', 'backup'] as const

const BillableItem = z.object({
  id: z.string().min(1).max(63).describe('Stable id of the item; the same in all plans that bill it.'),
  name: z.string().min(1).max(100).describe('Human-readable name.'),
  kind: z.enum(BILLABLE_KINDS).describe('Kind of the item: the plan itself, storage or backups.'),
  unit: z.string().min(1).max(32).describe('Unit of consumption, e.g. `GiB-month`.'),
  price: Price.describe('Price of one unit.'),
})

/** Reasons of a plan's `Ready` condition. */
export const PlanReason = {
  /** At least one region runs an engine of the plan. */
  Offered: 'Offered',
  /** No region runs an engine of the plan. */
  NotOffered: 'NotOffered',
} as const

export const PlanSpec = z.object({
  name: z.string().min(1).max(100).describe('Human-readable name.'),
  cpu: z.number().min(0.1).max(256).describe('CPU cores.'),
  memoryMiB: z.int().min(128).max(4_194_304).describe('Memory in MiB.'),
  storageGiB: z.int().min(1).max(65_536).describe('Storage in GiB.'),
  engines: z.array(Motor).min(1).max(7).describe('Motors that the plan allows.'),
  closedByDefault: z
    .boolean()
    .default(false)
    .describe('Whether a database without firewall rules rejects all sources outside the cluster. Default: it accepts all.'),
  price: Price.describe('Price of the plan itself.'),
  billableItems: z.array(BillableItem).max(16).default([]).describe('Items that are billed in addition to the plan.'),
})

/** Size and price of a dedicated database. */
export const Plan = defineKind({
  kind: 'Plan',
  plural: 'plans',
  shortNames: ['mplan'],
  namespaced: false,
  description: 'Size and price of a dedicated database.',
  spec: PlanSpec,
  status: z.object({ ...commonStatus }),
  columns: [
    { name: 'Cpu', type: 'string', jsonPath: '.spec.cpu' },
    { name: 'MemoryMiB', type: 'integer', jsonPath: '.spec.memoryMiB' },
    { name: 'StorageGiB', type: 'integer', jsonPath: '.spec.storageGiB' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type Plan = Resource<typeof Plan>
