import type { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { type Credentials, readCredentials } from './credentials.ts'
import type { Places } from './places.ts'
import type { Placement, World } from './plan.ts'
import type { Suspicions } from './suspicions.ts'

export interface ObserveDeps {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  readonly servers: Cache<typeof DatabaseServer>
  readonly regions: Cache<typeof Region>
  readonly admins: Admins
  readonly places: Places
  readonly suspicions: Suspicions
  readonly now: () => Date
}

/** What was read, beside what the decision is made from: the actions work on it. */
export interface Observation {
  readonly world: World
  readonly credentials: Credentials | undefined
  readonly server: DatabaseServer | undefined
  readonly open: OpenServer | undefined
  /** Name of the template's database. */
  readonly template: string | undefined
}

/** Reads all that a decision about an instance needs; writes nothing, but holds a place for one that has none. */
export async function observe(deps: ObserveDeps, instance: SharedInstance): Promise<Observation> {
  const credentials = await readCredentials(deps.store, instance)
  const template = templateOf(deps, instance)
  const server = serverOf(deps, { instance, credentials, template })
  const open = server && deps.admins.get(server.metadata.name)
  const placement = placementOf({ instance, credentials, server })
  const world: World = {
    instance,
    now: deps.now().getTime(),
    region: regionOf(deps, instance),
    placement,
    secret: credentials,
    template: instance.spec.templateRef === undefined ? 'none' : template?.status?.name === undefined ? 'missing' : 'ready',
    oversize: deps.suspicions.oversize.has(instance.metadata.uid),
    missing: await isMissing(deps, instance, open),
  }
  return { world, credentials, server, open, template: template?.status?.name }
}

function templateOf({ instances }: ObserveDeps, { spec, metadata }: SharedInstance): SharedInstance | undefined {
  const template = spec.templateRef && instances.get({ namespace: metadata.namespace, name: spec.templateRef.name })
  return template?.metadata.deletionTimestamp === undefined ? template : undefined
}

interface Chosen {
  readonly instance: SharedInstance
  readonly credentials: Credentials | undefined
  readonly template?: SharedInstance | undefined
}

/** The server it has, else (unless it is going) the template's, else one with room. */
function serverOf(deps: ObserveDeps, { instance, credentials, template }: Chosen): DatabaseServer | undefined {
  const { servers, places } = deps
  const { status, spec, metadata } = instance
  const name = status?.serverRef?.name ?? credentials?.server
  if (name === undefined) {
    if (metadata.deletionTimestamp !== undefined) return undefined
    return spec.templateRef === undefined ? places.choose(instance) : serverOfTemplate(deps, template)
  }
  if (status?.serverRef === undefined) places.hold(metadata.uid, name)
  return servers.get({ namespace: SHARED_NAMESPACE, name })
}

function serverOfTemplate({ servers }: ObserveDeps, template: SharedInstance | undefined): DatabaseServer | undefined {
  const name = template?.status?.serverRef?.name
  return name === undefined ? undefined : servers.get({ namespace: SHARED_NAMESPACE, name })
}

function placementOf({ instance, credentials, server }: Chosen & { readonly server: DatabaseServer | undefined }): Placement {
  const known = instance.status?.serverRef !== undefined || credentials !== undefined
  if (!server) return { found: known ? 'removed' : 'none' }
  const { host, port } = server.status ?? {}
  if (!isReady(server) || host === undefined || port === undefined) return { found: 'down' }
  return { found: 'reachable', host, port }
}

function regionOf({ regions }: ObserveDeps, { spec }: SharedInstance): World['region'] {
  const region = regions.list().find((candidate) => candidate.spec.id === spec.region)
  if (!region) return 'unknown'
  return region.spec.motors.some(({ id }) => id === spec.motor) ? 'served' : 'motor-missing'
}

/** Asked of the engine only for an instance that the sweeper did not find: a settled one costs no query. */
async function isMissing(
  { suspicions }: ObserveDeps,
  { metadata, status }: SharedInstance,
  open: OpenServer | undefined,
): Promise<boolean> {
  if (!suspicions.missing.has(metadata.uid) || !open || status?.name === undefined) return false
  const { database } = await open.admin.find(status.name)
  if (database) suspicions.missing.delete(metadata.uid)
  return !database
}
