import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { Motor } from './motor.ts'

/** Money is a decimal string: binary floats cannot hold cents. */
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
  unit: z.string().min(1).max(32).describe('What the amount is for, e.g. `month` or `GiB-month`.'),
})

export const BILLABLE_KINDS = ['plan', 'storage', 'backup'] as const

const BillableItem = z.object({
  id: z.string().min(1).max(63).describe('Name of the item; plans that bill the same item give it the same id.'),
  name: z.string().min(1).max(100).describe('Human-readable name.'),
  kind: z.enum(BILLABLE_KINDS).describe('What it is: the plan itself, storage or backups.'),
  unit: z.string().min(1).max(32).describe('What is counted, e.g. `GiB-month`.'),
  price: Price.describe('Price of one unit.'),
})

/** Reasons of a plan's `Ready` condition. */
export const PlanReason = {
  /** A region runs one of its engines at least. */
  Offered: 'Offered',
  /** No region runs any of its engines. */
  NotOffered: 'NotOffered',
} as const

export const PlanSpec = z.object({
  name: z.string().min(1).max(100).describe('Human-readable name.'),
  cpu: z.number().min(0.1).max(256).describe('Cores.'),
  memoryMiB: z.int().min(128).max(4_194_304).describe('Memory in MiB.'),
  storageGiB: z.int().min(1).max(65_536).describe('Storage in GiB.'),
  engines: z.array(Motor).min(1).max(7).describe('Motors this plan may run.'),
  price: Price.describe('Price of the plan itself.'),
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
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type Plan = Resource<typeof Plan>
