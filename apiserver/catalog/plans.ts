import { z } from 'zod'
import { Motor } from '../../crds/motor.ts'
import { BILLABLE_KINDS, type Plan } from '../../crds/plan.ts'

const Price = z
  .object({ amount: z.string().describe('Decimal string.'), currency: z.string(), unit: z.string() })
  .meta({ id: 'Price' })

export const PlanView = z
  .object({
    id: z.string(),
    name: z.string(),
    cpu: z.number(),
    memoryMiB: z.int(),
    storageGiB: z.int(),
    engines: z.array(Motor),
    price: Price,
  })
  .meta({ id: 'Plan' })
export type PlanView = z.output<typeof PlanView>

export const BillableItemView = z
  .object({ id: z.string(), name: z.string(), kind: z.enum(BILLABLE_KINDS), unit: z.string(), price: Price })
  .meta({ id: 'BillableItem' })
export type BillableItemView = z.output<typeof BillableItemView>

export function planView({ metadata, spec }: Plan): PlanView {
  const { name, cpu, memoryMiB, storageGiB, engines, price } = spec
  return { id: metadata.name, name, cpu, memoryMiB, storageGiB, engines: [...engines], price }
}

/** Returns each plan as a billable item, then the other billable items of the plans. An item of several plans appears once, as in the first plan. */
export function billableItemsOf(plans: readonly Plan[]): BillableItemView[] {
  const own = plans.map(({ metadata, spec: { name, price } }) => ({
    id: metadata.name,
    name,
    kind: 'plan' as const,
    unit: price.unit,
    price,
  }))
  const items = [...own, ...plans.flatMap(({ spec }) => spec.billableItems)]
  return [...new Map(items.toReversed().map((item) => [item.id, item])).values()].toReversed()
}
