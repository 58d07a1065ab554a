import type { Draft } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createOnce, objectName, requestHash } from '../idempotency.ts'
import { ApiError } from '../errors.ts'
import { CreateInstanceBody, expiryOf, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { newInstance } from '../new-instance.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../route.ts'

type Wish = Pick<RouteRequest<unknown, unknown, CreateInstanceBody>, 'body' | 'idempotencyKey'>

/** `POST /v1/instances`: records the wish and answers with a database that works (contract, "Shared instance"). */
export function createInstance(deps: InstanceDeps): AnyRoute {
  const { store, scopes, instances, quota, limits, waits, answer } = deps

  /** A final no leaves nothing, and neither does running out of time when nobody can ask for the same instance again. */
  async function discard({ metadata }: SharedInstance): Promise<void> {
    try {
      await store.delete(SharedInstance, metadata, { uid: metadata.uid })
    } catch {
      // Gone already, or the store is away: then the claim deadline ends it, and the answer is the first error all the same.
    }
  }

  async function createAndWait(draft: Draft<typeof SharedInstance>, { body, idempotencyKey }: Wish): Promise<Reply> {
    const { object } = await createOnce(store, SharedInstance, draft, requestHash(body))
    try {
      return await answer.withCredentials(201, await waits.claimed(object))
    } catch (error) {
      if (idempotencyKey === undefined || isFinal(error)) await discard(object)
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
      const { principal, body, idempotencyKey: key } = request
      const { namespace } = await scopes.home(request)
      await scopes.require(principal, { verb: 'create', resource: 'sharedinstances', namespace })
      await scopes.require(principal, { verb: 'get', resource: 'secrets', namespace })
      const name = objectName('i', { namespace, user: principal.user, key })
      const now = deps.now()
      // A repeated request is about an instance that is there: its time may have come closer since.
      const expiresAt = expiryOf(body, now)
      if (expiresAt !== undefined && !instances.get({ namespace, name })) requireAhead(expiresAt, now)
      const about = {
        namespace,
        name,
        createdBy: principal.user,
        keyed: key !== undefined,
        now,
        changeMs: limits.changeMs,
        expiresAt,
      }
      const draft = newInstance(deps, body, about)
      using places = new DisposableStack()
      places.use(quota.reserve({ namespace, name }))
      return await createAndWait(draft, request)
    },
  })
}

function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code !== 'unavailable'
}
