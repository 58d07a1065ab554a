import { SharedInstance } from '../../../crds/shared-instance.ts'
import { createOnce, objectName, requestHash, sameRequest } from '../../http/idempotency.ts'
import { ApiError } from '../../http/errors.ts'
import { CreateInstanceBody } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { createInstanceMaking, isFinal, type ObjectKey } from '../instance-making.ts'
import { claimOverdue } from '../instance-verdict.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'

type Request = RouteRequest<unknown, unknown, CreateInstanceBody>

/** The object, and whether this very request made it. */
interface Made {
  readonly object: SharedInstance
  readonly created: boolean
}

/** `POST /v1/instances`: creates the resource and answers with a database that works (contract, "Shared instance"). */
export function createInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, quota, limits, waits, answer, audit } = deps
  const making = createInstanceMaking(deps)

  /**
   * Makes the object, or finds what the same request made earlier: that one was granted, and its repetition is answered as it was, whatever
   * would be said to it today (its region has dropped the motor, its time has come closer, its template is gone, the namespace is full).
   */
  async function create(request: Request, key: ObjectKey, places: DisposableStack): Promise<Made> {
    const hash = requestHash(request.body)
    try {
      const { principal, body, idempotencyKey } = request
      const draft = await making.draftOf({ principal, body, repeatable: idempotencyKey !== undefined }, key)
      places.use(quota.reserve(key))
      if (performance.now() - request.arrivedAt >= limits.changeMs) throw claimOverdue(undefined)
      return await createOnce(store, SharedInstance, draft, hash)
    } catch (refusal) {
      if (request.idempotencyKey === undefined || !(refusal instanceof ApiError)) throw refusal
      const earlier = await store.get(SharedInstance, key)
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
      // Nothing is left of a refused request, nor of one that no later request can join.
      if (request.idempotencyKey === undefined || isFinal(error)) await making.discard(object, { principal, requestId, sourceIp })
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
