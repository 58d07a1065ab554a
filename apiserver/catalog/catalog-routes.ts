import { z } from 'zod'
import { page, type PageKey, PageQuery, resourceKey } from '../http/paging.ts'
import { createRegions, type Regions, type RegionsDeps, RegionView } from './regions.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { type Plan, BILLABLE_KINDS } from '../../crds/plan.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import type { Cache } from '../../store/cache.ts'
import { hasPointInTimeRecovery, type WithoutBackups } from '../databases/database-backups.ts'
import { FAMILIES, Motor, MOTORS, partsOf } from '../../crds/motor.ts'

/** Whether the installation has a repository of backups, and for which engines; whether it keeps measured values. */
type Offer = Pick<CatalogWiring, 'restoreGrants' | 'withoutBackups' | 'records'>

interface AddOn {
  readonly id: string
  readonly name: string
  readonly isFor: (engine: Motor) => boolean
}

const all = (): boolean => true

/** Add-ons that work in this installation, with the engines that have each. */
function addOnsOf(regions: readonly RegionView[], { restoreGrants, withoutBackups, records }: Offer): readonly AddOn[] {
  const withEdges = enginesIn(regions.filter(({ tunnels }) => tunnels))
  const addOns: readonly (AddOn | undefined)[] = [
    { id: 'firewall', name: 'Firewall', isFor: all },
    { id: 'private-network', name: 'Private networking', isFor: all },
    withEdges.size > 0 ? { id: 'ssh-tunnel', name: 'SSH tunnel', isFor: (engine) => withEdges.has(engine) } : undefined,
    records && { id: 'monitoring', name: 'Monitoring', isFor: all },
    restoreGrants && {
      id: 'point-in-time-recovery',
      name: 'Point-in-time recovery',
      isFor: (engine) => hasPointInTimeRecovery(engine, withoutBackups),
    },
  ]
  return addOns.filter((addOn) => addOn !== undefined)
}

/** Engines that at least one of these regions runs. */
const enginesIn = (regions: readonly RegionView[]): ReadonlySet<Motor> =>
  new Set(regions.flatMap(({ motors }) => motors.flatMap(({ id, supported }) => (supported ? [id] : []))))

const EngineView = z
  .object({
    id: Motor,
    family: z.enum(FAMILIES),
    version: z.string(),
    supported: z.boolean(),
    addons: z.array(z.string()).describe('Ids of the add-ons available for a dedicated database of this engine.'),
  })
  .meta({ id: 'Engine' })
type EngineView = z.output<typeof EngineView>

/** Page key of an engine. Engines have no creation time; their position in MOTORS takes its place, so that pages keep that order. */
const engineKey = ({ id }: EngineView): PageKey => ({
  createdAt: String(MOTORS.length - MOTORS.indexOf(id)).padStart(3, '0'),
  id,
})

/** Returns the engines that at least one region runs, in the order of MOTORS. */
export function enginesOf(regions: readonly RegionView[], offer: Offer = {}): EngineView[] {
  const served = enginesIn(regions)
  const addOns = addOnsOf(regions, offer)
  return MOTORS.filter((id) => served.has(id)).map((id) => ({
    id,
    ...partsOf(id),
    supported: true,
    addons: addOns.flatMap((addOn) => (addOn.isFor(id) ? [addOn.id] : [])),
  }))
}

/** `GET /v1/regions`: open to every caller. */
function listRegions({ regions }: { readonly regions: Regions }): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/regions',
    on: ['shared', 'dedicated'],
    id: 'listRegions',
    summary: 'List the regions and the engines that each runs.',
    query: z.object(PageQuery),
    replies: { 200: z.object({ regions: z.array(RegionView), nextCursor: z.string().nullable() }) },
    async handle({ query }) {
      const { items, nextCursor } = page(regions.all(), query, resourceKey)
      return { status: 200, data: { regions: items.map(regions.view), nextCursor } }
    },
  })
}

/** `GET /v1/engines`: open to every caller. */
function listEngines({ regions, ...offer }: { readonly regions: Regions } & Offer): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/engines',
    on: ['dedicated'],
    id: 'listEngines',
    summary: 'List the engines that at least one region runs.',
    query: z.object(PageQuery),
    replies: { 200: listOf('engines', EngineView) },
    async handle({ query }) {
      const { items, nextCursor } = page(enginesOf(regions.all().map(regions.view), offer), query, engineKey)
      return { status: 200, data: { engines: items, nextCursor } }
    },
  })
}

const Price = z
  .object({ amount: z.string().describe('Decimal string.'), currency: z.string(), unit: z.string() })
  .meta({ id: 'Price' })

const PlanView = z
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
type PlanView = z.output<typeof PlanView>

const BillableItemView = z
  .object({ id: z.string(), name: z.string(), kind: z.enum(BILLABLE_KINDS), unit: z.string(), price: Price })
  .meta({ id: 'BillableItem' })
type BillableItemView = z.output<typeof BillableItemView>

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

const Metadata = z
  .object({
    engines: z.array(EngineView),
    regions: z.array(RegionView),
    plans: z.array(PlanView),
    billableItems: z.array(BillableItemView),
    addons: z.array(z.object({ id: z.string(), name: z.string(), engines: z.array(z.string()) })),
  })
  .meta({ id: 'CreateMetadata' })
/** What a dedicated database can be made of. */
export type CreateMetadata = z.output<typeof Metadata>

export interface CreateMetadataDeps extends Offer {
  readonly regions: Regions
  readonly plans: Cache<typeof Plan>
}

/** `GET /v1/databases/create/metadata`: engines, regions, plans and prices for a form that creates a dedicated database. Open to every caller. */
function createMetadata({ regions, plans, ...offer }: CreateMetadataDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/databases/create/metadata',
    on: ['dedicated'],
    id: 'getCreateMetadata',
    summary: 'Get the engines, regions, plans and prices of dedicated databases.',
    replies: { 200: z.object({ metadata: Metadata }) },
    async handle() {
      const views = regions.all().map(regions.view)
      const all = plans.list()
      const engines = enginesOf(views, offer)
      const addons = addOnsOf(views, offer).map(({ isFor, ...addOn }) => ({
        ...addOn,
        engines: engines.map(({ id }) => id).filter(isFor),
      }))
      const offers = { plans: all.map(planView), billableItems: billableItemsOf(all), addons }
      return { status: 200, data: { metadata: { engines, regions: views, ...offers } } }
    },
  })
}

export interface CatalogWiring extends RegionsDeps {
  readonly plans: Cache<typeof Plan>
  /** Absent in an installation without a repository of backups. */
  readonly restoreGrants?: RestoreGrants | undefined
  readonly withoutBackups?: WithoutBackups
  /** Measured values of databases. Absent in an installation without a journal. */
  readonly records?: object | undefined
}

/** Returns the routes of regions, engines and plans (docs/api.md, "Regions, engines and plans"). */
export function catalogRoutes(wiring: CatalogWiring): AnyRoute[] {
  const regions = createRegions(wiring)
  const { plans, restoreGrants, withoutBackups, records } = wiring
  const offer = { regions, restoreGrants, withoutBackups, records }
  return [listRegions({ regions }), listEngines(offer), createMetadata({ ...offer, plans })]
}
