import { type ObjectKey, createOnce, objectName, requestHash, sameRequest } from '../../resources/creations.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { ApiError } from '../../http/errors.ts'
import { CreateInstanceBody } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { createInstanceCreation, isFinal } from '../new-instance.ts'
import { claimTimeout } from '../instance-waits.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'

type Request = RouteRequest<unknown, unknown, CreateInstanceBody>

/** Object, and whether this request created it. */
interface Creation {
  readonly object: SharedInstance
  readonly created: boolean
}

/** `POST /v1/instances`: creates the resource and answers with a database that works (docs/api.md, "Instances"). */
export function createInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, quota, limits, waits, answer, audit } = deps
  const creation = createInstanceCreation(deps)

  /**
   * Creates the object, or returns the one that the same request created earlier. A repeated request gets its first answer even if a new one would be
   * rejected now (motor dropped by the region, expiry too close, template deleted, quota used up).
   */
  async function create(request: Request, key: ObjectKey, reservations: DisposableStack): Promise<Creation> {
    const hash = requestHash(request.body)
    try {
      const { principal, body, idempotencyKey } = request
      const draft = await creation.draftOf({ principal, body, repeatable: idempotencyKey !== undefined }, key)
      reservations.use(quota.reserve(key))
      if (performance.now() - request.arrivedAt >= limits.changeMs) throw claimTimeout(undefined)
      return await createOnce(store, SharedInstance, draft, hash)
    } catch (error) {
      if (request.idempotencyKey === undefined || !(error instanceof ApiError)) throw error
      const earlier = await store.get(SharedInstance, key)
      if (!earlier) throw error
      return { object: sameRequest<typeof SharedInstance>(earlier, hash), created: false }
    }
  }

  /** Waits for the claim and writes the audit entry meanwhile. */
  async function settle({ object, created }: Creation, request: Request): Promise<Reply> {
    const { principal, requestId, sourceIp } = request
    const recorded = created && audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
    try {
      const claimed = await waits.claimed(object, request.arrivedAt)
      const reply = await answer.withCredentials(201, claimed, request.arrivedAt)
      await recorded
      return reply
    } catch (error) {
      await recorded
      // A rejected request, or one that no later request can join, leaves no instance.
      if (request.idempotencyKey === undefined || isFinal(error))
        await creation.discard(object, { principal, requestId, sourceIp })
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
      'with an `Idempotency-Key` the creation continues, and the same request joins it. 409 when sessions stay open on the template for 3 seconds.',
    ].join(' '),
    idempotent: true,
    home: true,
    replies: { 201: InstanceData },
    async handle(request) {
      const { principal, idempotencyKey: key } = request
      const { namespace } = await scopes.home(request)
      // Checked in parallel: in a cluster each check can be a request to the Kubernetes API server.
      await Promise.all([
        scopes.require(principal, { verb: 'create', resource: 'sharedinstances', namespace }),
        scopes.require(principal, { verb: 'get', resource: 'secrets', namespace }),
      ])
      const name = objectName('i', { namespace, user: principal.user, key })
      // Released at the end of the request, when the cache has the instance.
      using reservations = new DisposableStack()
      return await settle(await create(request, { namespace, name }, reservations), request)
    },
  })
}
