import { z } from 'zod'
import { FAMILIES, Motor, MOTORS, partsOf } from '../../crds/motor.ts'
import type { PageKey } from '../http/paging.ts'
import type { RegionView } from './regions.ts'

export const EngineView = z
  .object({
    id: Motor,
    family: z.enum(FAMILIES),
    version: z.string(),
    supported: z.boolean(),
    addons: z.array(z.string()).describe('Ids of add-ons that a dedicated database of this engine can have.'),
  })
  .meta({ id: 'Engine' })
export type EngineView = z.output<typeof EngineView>

/** Engines have no time of their creation: their place in the contract stands for one, so that pages keep its order. */
export const engineKey = ({ id }: EngineView): PageKey => ({
  createdAt: String(MOTORS.length - MOTORS.indexOf(id)).padStart(3, '0'),
  id,
})

/** The engines that some region runs, in the order of the contract. */
export function enginesOf(regions: readonly RegionView[]): EngineView[] {
  const served = new Set(regions.flatMap(({ motors }) => motors.flatMap(({ id, supported }) => (supported ? [id] : []))))
  return MOTORS.filter((id) => served.has(id)).map((id) => ({ id, ...partsOf(id), supported: true, addons: [] }))
}
