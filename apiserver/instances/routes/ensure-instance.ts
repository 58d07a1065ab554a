import { SharedInstance } from '../../../crds/shared-instance.ts'
import { isStoreError } from '../../../store/errors.ts'
import { addExtensions } from '../add-extensions.ts'
import { withinBudget } from '../../http/budget.ts'
import { whenGone } from '../../resources/cache-waits.ts'
import { changeSpec } from '../../resources/change-spec.ts'
import { ApiError } from '../../http/errors.ts'
import { requireExpected } from '../../http/if-match.ts'
import { EnsureInstanceBody, expiryOf } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { mustHaveRoom } from '../instance-lookup.ts'
import { createInstanceMaking, isFinal } from '../instance-making.ts'
import { claimOutcome, claimOverdue, tooLate } from '../instance-verdict.ts'
import { BY_IDENTIFIER_PATH, ByIdentifierParams, findByIdentifier, nameByIdentifier } from '../instances-by-identifier.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'

type Request = RouteRequest<{ readonly identifier: string }, unknown, EnsureInstanceBody>

/** Ends of life that are less apart than this are the same one: of many requests at once, one writes it. */
const SAME_END_MS = 1_000
/** Between two looks at an object that the store still has and the cache has not heard of. */
const BEHIND_MS = 50

/** `PUT /v1/instances/by-identifier/{identifier}`: the database of this identifier, made when there is none. */
export function ensureInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, instances, quota, regions, limits, waits, answer, audit, now } = deps
  const making = createInstanceMaking(deps)
  const leftOf = ({ arrivedAt }: Request): number => limits.changeMs - (performance.now() - arrivedAt)

  /** @throws ApiError `conflict` when it is another database than the body says; `unknown_region`, `unsupported_motor` when none can be so */
  function requireSame({ spec }: SharedInstance, { params, body }: Request): void {
    if (spec.motor === body.motor && spec.region.toLowerCase() === body.region.toLowerCase()) return
    const { motor, region } = regions.choose(body)
    const field = motor === spec.motor ? 'region' : 'motor'
    const is =
      motor === spec.motor
        ? `in region ${regions.nameOf(spec.region)}, not ${region.spec.name}`
        : `a ${spec.motor}, not a ${motor}`
    const message = `the database ${params.identifier} is ${is}; delete it first, or choose another identifier`
    throw new ApiError('conflict', message, { details: [{ field, message: 'must be that of the database that is there' }] })
  }

  /** Starts the ttl again. */
  async function restart(found: SharedInstance, request: Request): Promise<SharedInstance> {
    const { principal, requestId, sourceIp, body, ifMatch } = request
    const expiresAt = expiryOf({ ttl: body.ttl }, now())
    if (expiresAt === undefined) return found
    await scopes.require(principal, { verb: 'patch', resource: 'sharedinstances', namespace: found.metadata.namespace })
    const specOf = ({ spec }: SharedInstance) => {
      const isSame = Math.abs(Date.parse(spec.expiresAt ?? '') - Date.parse(expiresAt)) < SAME_END_MS
      return isSame ? {} : { expiresAt }
    }
    const { before, after, isChanged } = await changeSpec(store, SharedInstance, { found, ifMatch, specOf })
    if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
    return after
  }

  /** The database once it has the extensions of the body. */
  async function extended(there: SharedInstance, request: Request): Promise<SharedInstance> {
    const names = request.body.extensions ?? []
    if (names.every((name) => there.status?.extensions?.includes(name))) return there
    await scopes.require(request.principal, { verb: 'patch', resource: 'sharedinstances', namespace: there.metadata.namespace })
    mustHaveRoom(there)
    return await addExtensions(deps, { instance: there, names, field: 'extensions', request })
  }

  /** Answers with a database that is there, or under way by another request. Undefined: it goes, so look again. */
  async function join(found: SharedInstance, request: Request): Promise<Reply | undefined> {
    const { principal, requestId, sourceIp, arrivedAt, ifMatch } = request
    requireExpected(found.metadata.resourceVersion, ifMatch)
    requireSame(found, request)
    try {
      const { metadata } = await restart(found, request)
      const isThere = (seen: SharedInstance) =>
        seen.metadata.generation >= metadata.generation && claimOutcome(seen) !== undefined
      const there = await waits.changed(found, isThere, arrivedAt)
      if (!there) throw claimOverdue(instances.byUid(metadata.uid))
      const reply = await answer.withCredentials(200, await extended(there, request))
      await audit.record({ principal, requestId, sourceIp, action: 'read', after: there })
      return reply
    } catch (error) {
      if (await isGoing(found)) return undefined
      throw error
    }
  }

  async function isGoing({ metadata }: SharedInstance): Promise<boolean> {
    const current = await store.get(SharedInstance, metadata)
    return current?.metadata.uid !== metadata.uid || current.metadata.deletionTimestamp !== undefined
  }

  /** Makes the object. Undefined: another request was quicker, or the object that had the name is gone now, so look again. */
  async function make(request: Request, places: DisposableStack): Promise<SharedInstance | undefined> {
    const { principal, params, body } = request
    const { namespace } = await scopes.home(request)
    for (let attempt = 0; leftOf(request) > 0; attempt++) {
      const key = { namespace, name: nameByIdentifier(namespace, params.identifier, attempt) }
      const wanted = { principal, body: { ...body, identifier: params.identifier }, repeatable: true }
      const draft = await making.draftOf(wanted, key)
      places.use(quota.reserve(key))
      try {
        return await store.create(SharedInstance, draft)
      } catch (error) {
        if (!isStoreError(error, 'already_exists')) throw error
      }
      const other = await store.get(SharedInstance, key)
      if (!other || (await wentAway(other, request)) || other.spec.identifier === params.identifier) return undefined
    }
    throw claimOverdue(undefined)
  }

  /** Waits for the end of an object that is being deleted. False at once when it stays. @throws ApiError `unavailable` */
  async function wentAway(other: SharedInstance, request: Request): Promise<boolean> {
    if (other.metadata.deletionTimestamp === undefined) return false
    const gone = await withinBudget(Math.max(0, leftOf(request)), (signal) => whenGone(instances, other, signal))
    if (!gone) throw tooLate(`the database that was ${other.spec.identifier} is still being deleted; try again`)
    if ((await store.get(SharedInstance, other.metadata))?.metadata.uid === other.metadata.uid) {
      await new Promise((resolve) => setTimeout(resolve, BEHIND_MS))
    }
    return true
  }

  /** Answers once the database of a new object works. What was refused leaves nothing; what takes too long goes on, and the next request joins it. */
  async function settle(object: SharedInstance, request: Request): Promise<Reply> {
    const { principal, requestId, sourceIp, arrivedAt } = request
    const by = { principal, requestId, sourceIp }
    const recorded = audit.record({ ...by, action: 'create', after: object })
    try {
      const reply = await answer.withCredentials(201, await waits.claimed(object, arrivedAt))
      await recorded
      return reply
    } catch (error) {
      await recorded
      if (isFinal(error)) await making.discard(object, by)
      throw error
    }
  }

  return route({
    method: 'put',
    path: BY_IDENTIFIER_PATH,
    on: ['shared'],
    id: 'ensureInstance',
    summary: 'Get the database of an identifier with its credentials; create it when there is none.',
    description: [
      'For CI: the same call at the start of each run, in any number at once, gives one database. 201 when it was made, 200 when it was there;',
      '`ttl` starts again then, and `extensions` that it lacks are installed. 409 when the database is of another motor or in another region, and when several have the identifier.',
      'A request that cannot finish in 25 seconds is answered 503; the creation goes on, and the same request joins it. One that is being deleted',
      'is waited for. A disabled one is answered as it is, with `isEnabled: false`. The read of credentials is recorded in the audit log.',
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
      using places = new DisposableStack()
      while (leftOf(request) > 0) {
        const { live } = await findByIdentifier(store, namespace, params.identifier)
        const joined = live && (await join(live, request))
        if (joined) return joined
        if (live) continue
        requireExpected(undefined, ifMatch)
        const made = await make(request, places)
        if (made) return await settle(made, request)
      }
      throw claimOverdue(undefined)
    },
  })
}
