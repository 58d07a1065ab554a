import type { Draft } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createOnce, objectName, requestHash, sameRequest } from '../idempotency.ts'
import { ApiError } from '../errors.ts'
import { CreateInstanceBody, expiryOf, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { claimOverdue } from '../instance-verdict.ts'
import { newInstance } from '../new-instance.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../route.ts'

type Request = RouteRequest<unknown, unknown, CreateInstanceBody>

/** Where the object of a request is or goes. */
interface Place {
  readonly namespace: string
  readonly name: string
}

/** The object, and whether this very request made it. */
interface Made {
  readonly object: SharedInstance
  readonly created: boolean
}

/** `POST /v1/instances`: records the wish and answers with a database that works (contract, "Shared instance"). */
export function createInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, instances, quota, limits, waits, answer, audit, catchUp } = deps

  /** A final no leaves nothing, and neither does running out of time when nobody can ask for the same instance again. */
  async function discard(before: SharedInstance, { principal, requestId, sourceIp }: Request): Promise<void> {
    const { metadata } = before
    try {
      await store.delete(SharedInstance, metadata, { uid: metadata.uid })
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before })
    } catch {
      // Gone already, or the store is away: then the claim deadline ends it, and the answer is the first error all the same.
    }
  }

  /** @throws ApiError of what is wrong with the body or in the way of its wish */
  async function draftOf({ principal, body, idempotencyKey: key }: Request, place: Place): Promise<Draft<typeof SharedInstance>> {
    const now = deps.now()
    const expiresAt = expiryOf(body, now)
    if (expiresAt !== undefined) requireAhead(expiresAt, now)
    const { template } = body
    if (template !== undefined) await catchUp(instances, () => instances.byUid(template.toLowerCase()))
    const about = { ...place, createdBy: principal.user, keyed: key !== undefined, now, changeMs: limits.changeMs, expiresAt }
    return newInstance(deps, body, about)
  }

  /**
   * Makes the object, or finds what the same request made earlier: that one was granted, and its repetition is answered as it was, whatever
   * would be said to it today (its region has dropped the motor, its time has come closer, its template is gone, the namespace is full).
   */
  async function create(request: Request, place: Place, places: DisposableStack): Promise<Made> {
    const hash = requestHash(request.body)
    try {
      const draft = await draftOf(request, place)
      places.use(quota.reserve(place))
      if (performance.now() - request.arrivedAt >= limits.changeMs) throw claimOverdue(undefined)
      return await createOnce(store, SharedInstance, draft, hash)
    } catch (refusal) {
      if (request.idempotencyKey === undefined || !(refusal instanceof ApiError)) throw refusal
      const earlier = await store.get(SharedInstance, place)
      if (!earlier) throw refusal
      return { object: sameRequest<typeof SharedInstance>(earlier, hash), created: false }
    }
  }

  /** The entry of the creation is kept beside the claim, which takes longer. */
  async function settle({ object, created }: Made, request: Request): Promise<Reply> {
    const { principal, requestId, sourceIp } = request
    const recorded = created && audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
    try {
      const claimed = await waits.claimed(object, request.arrivedAt)
      const reply = await answer.withCredentials(201, claimed)
      await recorded
      return reply
    } catch (error) {
      await recorded
      if (request.idempotencyKey === undefined || isFinal(error)) await discard(object, request)
      throw error
    }
  }

  return route({
    method: 'post',
    path: '/v1/instances',
    on: ['shared'],
    id: 'createInstance',
    summary: 'Create a database on a shared server; the answer has its connection details.',
    body: CreateInstanceBody,
    description: [
      'The database works when the answer is sent. A request that cannot finish in 25 seconds is answered 503 and leaves nothing;',
      'with an `Idempotency-Key` the creation goes on, and the same request joins it.',
    ].join(' '),
    idempotent: true,
    home: true,
    replies: { 201: InstanceData },
    async handle(request) {
      const { principal, idempotencyKey: key } = request
      const { namespace } = await scopes.home(request)
      // Asked together: in a cluster each is a call to the API server, when it was not asked lately.
      await Promise.all([
        scopes.require(principal, { verb: 'create', resource: 'sharedinstances', namespace }),
        scopes.require(principal, { verb: 'get', resource: 'secrets', namespace }),
      ])
      const name = objectName('i', { namespace, user: principal.user, key })
      // Given back when the cache knows the instance, which it does by the answer.
      using places = new DisposableStack()
      return await settle(await create(request, { namespace, name }, places), request)
    },
  })
}

function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code !== 'unavailable'
}
