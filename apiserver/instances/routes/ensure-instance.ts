import { SharedInstance } from '../../../crds/shared-instance.ts'
import { isStoreError } from '../../../store/port.ts'
import { addToInstance } from '../instance-extensions.ts'
import { withinBudget, whenGone } from '../../resources/cache-waits.ts'
import { changeSpec, requireExpected } from '../../resources/conditional-writes.ts'
import { ApiError } from '../../http/errors.ts'
import { EnsureInstanceBody, expiryOf } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { BY_IDENTIFIER_PATH, ByIdentifierParams, findByIdentifier, nameByIdentifier, requireQuota } from '../instance-lookup.ts'
import { createInstanceCreation, isFinal } from '../new-instance.ts'
import { claimOutcome, claimTimeout, retryLater } from '../instance-waits.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'

type Request = RouteRequest<{ readonly identifier: string }, unknown, EnsureInstanceBody>

/** Expiry times that differ by less count as equal, so that only one of many simultaneous requests writes. */
const SAME_EXPIRY_MS = 1_000
/** Milliseconds between two reads of an object that the cache has already lost and the store still has. */
const RETRY_MS = 50

/** `PUT /v1/instances/by-identifier/{identifier}`: returns the database of this identifier; creates it when missing. */
export function ensureInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, instances, quota, regions, limits, waits, answer, audit, now } = deps
  const creation = createInstanceCreation(deps)
  const leftOf = ({ arrivedAt }: Request): number => limits.changeMs - (performance.now() - arrivedAt)

  /** Checks region and motor of an existing database. @throws ApiError `conflict` when they differ from the body; `unknown_region`, `unsupported_motor` */
  function requireSame({ spec }: SharedInstance, { params, body }: Request): void {
    if (spec.motor === body.motor && spec.region.toLowerCase() === body.region.toLowerCase()) return
    const { motor, region } = regions.choose(body)
    const field = motor === spec.motor ? 'region' : 'motor'
    const is =
      motor === spec.motor
        ? `in region ${regions.nameOf(spec.region)}, not ${region.spec.name}`
        : `a ${spec.motor}, not a ${motor}`
    const message = `the database ${params.identifier} is ${is}; delete it first, or choose another identifier`
    throw new ApiError('conflict', message, { details: [{ field, message: 'must match the existing database' }] })
  }

  /** Sets the expiry to the body's ttl from now. */
  async function restart(found: SharedInstance, request: Request): Promise<SharedInstance> {
    const { principal, requestId, sourceIp, body, ifMatch } = request
    const expiresAt = expiryOf({ ttl: body.ttl }, now())
    if (expiresAt === undefined) return found
    await scopes.require(principal, { verb: 'patch', resource: 'sharedinstances', namespace: found.metadata.namespace })
    const specOf = ({ spec }: SharedInstance) => {
      const isSame = Math.abs(Date.parse(spec.expiresAt ?? '') - Date.parse(expiresAt)) < SAME_EXPIRY_MS
      return isSame ? {} : { expiresAt }
    }
    const { before, after, isChanged } = await changeSpec(store, SharedInstance, { found, ifMatch, specOf })
    if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
    return after
  }

  /** Installs the missing extensions of the body and returns the instance. */
  async function withExtensions(instance: SharedInstance, request: Request): Promise<SharedInstance> {
    const names = request.body.extensions ?? []
    if (names.every((name) => instance.status?.extensions?.includes(name))) return instance
    await scopes.require(request.principal, {
      verb: 'patch',
      resource: 'sharedinstances',
      namespace: instance.metadata.namespace,
    })
    requireQuota(instance)
    return await addToInstance(deps, { instance, names, field: 'extensions', request })
  }

  /** Answers with an existing database, or with one that another request is creating. Undefined when it is being deleted: the caller reads again. */
  async function join(found: SharedInstance, request: Request): Promise<Reply | undefined> {
    const { principal, requestId, sourceIp, arrivedAt, ifMatch } = request
    requireExpected(found.metadata.resourceVersion, ifMatch)
    requireSame(found, request)
    try {
      const { metadata } = await restart(found, request)
      const isClaimDecided = (seen: SharedInstance) =>
        seen.metadata.generation >= metadata.generation && claimOutcome(seen) !== undefined
      const instance = await waits.changed(found, isClaimDecided, arrivedAt)
      if (!instance) throw claimTimeout(instances.byUid(metadata.uid))
      const reply = await answer.withCredentials(200, await withExtensions(instance, request), arrivedAt)
      await audit.record({ principal, requestId, sourceIp, action: 'read', after: instance })
      return reply
    } catch (error) {
      if (await isBeingDeleted(found)) return undefined
      throw error
    }
  }

  async function isBeingDeleted({ metadata }: SharedInstance): Promise<boolean> {
    const current = await store.get(SharedInstance, metadata)
    return current?.metadata.uid !== metadata.uid || current.metadata.deletionTimestamp !== undefined
  }

  /** Creates the object. Undefined when another request was faster or the object with the name is gone by now: the caller reads again. */
  async function create(request: Request, reservations: DisposableStack): Promise<SharedInstance | undefined> {
    const { principal, params, body } = request
    const { namespace } = await scopes.home(request)
    for (let attempt = 0; leftOf(request) > 0; attempt++) {
      const key = { namespace, name: nameByIdentifier(namespace, params.identifier, attempt) }
      const wanted = { principal, body: { ...body, identifier: params.identifier }, repeatable: true }
      const draft = await creation.draftOf(wanted, key)
      reservations.use(quota.reserve(key))
      try {
        return await store.create(SharedInstance, draft)
      } catch (error) {
        if (!isStoreError(error, 'already_exists')) throw error
      }
      const other = await store.get(SharedInstance, key)
      if (!other || (await waitForDeletion(other, request)) || other.spec.identifier === params.identifier) return undefined
    }
    throw claimTimeout(undefined)
  }

  /** Waits until an object that is being deleted is gone; false at once when it is not being deleted. @throws ApiError `unavailable` */
  async function waitForDeletion(other: SharedInstance, request: Request): Promise<boolean> {
    if (other.metadata.deletionTimestamp === undefined) return false
    const gone = await withinBudget(Math.max(0, leftOf(request)), (signal) => whenGone(instances, other, signal))
    if (!gone) throw retryLater(`the earlier database ${other.spec.identifier} is still being deleted; try again`)
    if ((await store.get(SharedInstance, other.metadata))?.metadata.uid === other.metadata.uid) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
    return true
  }

  /** Answers once the database of a new object works. A rejected claim is discarded; one past the time budget continues, and the next request joins it. */
  async function settle(object: SharedInstance, request: Request): Promise<Reply> {
    const { principal, requestId, sourceIp, arrivedAt } = request
    const by = { principal, requestId, sourceIp }
    const recorded = audit.record({ ...by, action: 'create', after: object })
    try {
      const reply = await answer.withCredentials(201, await waits.claimed(object, arrivedAt), arrivedAt)
      await recorded
      return reply
    } catch (error) {
      await recorded
      if (isFinal(error)) await creation.discard(object, by)
      throw error
    }
  }

  return route({
    method: 'put',
    path: BY_IDENTIFIER_PATH,
    on: ['shared'],
    id: 'ensureInstance',
    summary: 'Get the database of an identifier with its credentials; create it when missing.',
    description: [
      'For CI: the same request at the start of each run returns the same database, also when many runs start at once. 201 when the database was created, 200 when it existed;',
      'then `ttl` starts again and missing `extensions` are installed. 409 when the database has another motor or region, and when several databases have the identifier.',
      'A request that cannot finish in 25 seconds is answered 503; the creation continues, and the same request joins it. The request waits for a database that is',
      'being deleted. A disabled database is returned with `isEnabled: false`. The read of credentials is recorded in the audit log.',
    ].join(' '),
    conditional: true,
    home: true,
    params: ByIdentifierParams,
    body: EnsureInstanceBody,
    replies: { 200: InstanceData, 201: InstanceData },
    async handle(request) {
      const { principal, params, ifMatch } = request
      const { namespace } = await scopes.home(request)
      await Promise.all([
        scopes.require(principal, { verb: 'create', resource: 'sharedinstances', namespace }),
        scopes.require(principal, { verb: 'get', resource: 'secrets', namespace }),
      ])
      using reservations = new DisposableStack()
      while (leftOf(request) > 0) {
        const { live } = await findByIdentifier(store, namespace, params.identifier)
        const joined = live && (await join(live, request))
        if (joined) return joined
        if (live) continue
        requireExpected(undefined, ifMatch)
        const created = await create(request, reservations)
        if (created) return await settle(created, request)
      }
      throw claimTimeout(undefined)
    },
  })
}
