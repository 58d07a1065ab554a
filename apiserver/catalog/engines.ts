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
    addons: z.array(z.string()).describe('Ids of the add-ons available for a dedicated database of this engine.'),
  })
  .meta({ id: 'Engine' })
export type EngineView = z.output<typeof EngineView>

/** Page key of an engine. Engines have no creation time; their position in MOTORS takes its place, so that pages keep that order. */
export const engineKey = ({ id }: EngineView): PageKey => ({
  createdAt: String(MOTORS.length - MOTORS.indexOf(id)).padStart(3, '0'),
  id,
})

/** Returns the engines that at least one region runs, in the order of MOTORS. */
export function enginesOf(regions: readonly RegionView[]): EngineView[] {
  const served = new Set(regions.flatMap(({ motors }) => motors.flatMap(({ id, supported }) => (supported ? [id] : []))))
  return MOTORS.filter((id) => served.has(id)).map((id) => ({ id, ...partsOf(id), supported: true, addons: [] }))
}
