import type { Draft } from '../crds/kind.ts'
import { MOTORS } from '../crds/motor.ts'
import { Plan } from '../crds/plan.ts'
import { isStoreError, type Store } from '../store/port.ts'

const monthly = (amount: string) => ({ amount, currency: 'EUR', unit: 'month' })
const byGibibyte = (amount: string) => ({ amount, currency: 'EUR', unit: 'GiB-month' })

const BILLABLE_ITEMS = [
  { id: 'storage', name: 'Storage', kind: 'storage', unit: 'GiB-month', price: byGibibyte('0.10') },
  { id: 'backup', name: 'Backups', kind: 'backup', unit: 'GiB-month', price: byGibibyte('0.05') },
] as const

/** Size of a plan: cores, memory in MiB, storage in GiB, price of a month. */
type Size = readonly [cpu: number, memoryMiB: number, storageGiB: number, amount: string]

function plan(name: string, [cpu, memoryMiB, storageGiB, amount]: Size): Draft<typeof Plan> {
  const title = name.charAt(0).toUpperCase() + name.slice(1)
  const size = { name: title, cpu, memoryMiB, storageGiB }
  return {
    metadata: { name },
    spec: { ...size, engines: [...MOTORS], price: monthly(amount), billableItems: [...BILLABLE_ITEMS] },
  }
}

/** Plans of a new installation, the same as in the chart's values. */
export const DEFAULT_PLANS: readonly Draft<typeof Plan>[] = [
  plan('small', [0.5, 512, 10, '9.00']),
  plan('medium', [1, 2_048, 50, '29.00']),
  plan('large', [4, 8_192, 200, '119.00']),
]

/** Creates the default plans where no Plan exists. An administrator's plans, and the deletion of some, stay as they are. */
export async function ensurePlans(store: Store): Promise<void> {
  if ((await store.list(Plan)).items.length > 0) return
  for (const draft of DEFAULT_PLANS) {
    try {
      await store.create(Plan, draft)
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
  }
}
