import type { Draft } from '../../../crds/kind.ts'
import { annotations, FINALIZER } from '../../../crds/names.ts'
import { Tunnel, TunnelReason } from '../../../crds/tunnel.ts'
import { takesTunnels } from '../../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../../store/conditions.ts'
import type { AuditedRequest } from '../../journal/audit.ts'
import { firstOf, withinBudget } from '../../http/budget.ts'
import { createdNow } from '../../resources/created-at.ts'
import { ApiError } from '../../http/errors.ts'
import { createOnce, objectName, requestHash, sameRequest } from '../../http/idempotency.ts'
import { tooLate } from '../../instances/instance-verdict.ts'
import { type AnyRoute, route, type Scope } from '../../http/route.ts'
import { NamespaceParams } from '../../tenancy/tenancy-deps.ts'
import { CreateTunnelBody } from '../tunnel-body.ts'
import { checkNewConfig } from '../tunnel-config-checks.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { TUNNELS_PATH } from '../tunnel-lookup.ts'

/** How long an answer waits for the hostname and the certificate. */
const BUDGET_MS = 25_000

/** What the operator says after which waiting is of no use. */
const REFUSALS: ReadonlyMap<string, Refused> = new Map<string, Refused>([
  [TunnelReason.UnknownRegion, 'unknown_region'],
  [TunnelReason.NoActiveEndpoint, 'no_active_endpoint'],
  // Two API servers at once, or one and kubectl: it was within the quota when it came.
  [TunnelReason.QuotaExceeded, 'quota_exceeded'],
])

type Refused = 'unknown_region' | 'no_active_endpoint' | 'quota_exceeded'

function refusal(code: Refused, message: string): ApiError {
  return new ApiError(code, message, { details: code === 'quota_exceeded' ? [] : [{ field: 'regionId', message }] })
}

/** What becomes of a tunnel, asked at each of its changes; undefined while it is under way. @throws ApiError when it is refused, or somebody deletes it */
function outcomeOf(uid: string): (tunnel: Tunnel | undefined) => Tunnel | undefined {
  let seen = false
  return function outcome(tunnel) {
    const isIt = tunnel?.metadata.uid === uid
    // Until it was seen once, it has not come yet.
    if (isIt ? tunnel.metadata.deletionTimestamp !== undefined : seen)
      throw new ApiError('conflict', 'another request deleted this tunnel meanwhile')
    seen = isIt
    return isIt ? settledOf(tunnel) : undefined
  }
}

/** The tunnel when it is ready, or as good as it gets. @throws ApiError when it is refused */
function settledOf(tunnel: Tunnel): Tunnel | undefined {
  const condition = conditionOf(tunnel, 'Ready')
  if (!condition || (condition.observedGeneration ?? 0) < tunnel.metadata.generation) return undefined
  if (condition.status === 'True' || isStuck(tunnel)) return tunnel
  const code = REFUSALS.get(condition.reason)
  if (code) throw refusal(code, condition.message)
  return undefined
}

/** A certificate that could not be had at once is tried again; the hostname is there, and the answer says so. */
const isStuck = ({ status }: Tunnel): boolean => status?.hostname !== undefined && status.certificate?.status === 'failed'

/** `POST …/tunnels`: records the wish and answers when its hostname is drawn and its certificate there (contract, "Creation steps"). */
export function createTunnel(deps: TunnelDeps): AnyRoute {
  const { store, scopes, tunnels, regions, endpoints, quota, audit, now } = deps

  /** Said at once where it is known; the operator's word counts. @throws ApiError `unknown_region`, `no_active_endpoint` */
  function requireEndpoint(regionId: number): void {
    const region = regions.list().find(({ spec }) => spec.regionId === regionId)
    if (!region) throw refusal('unknown_region', `unknown region: ${regionId}`)
    const isActive = endpoints.list().some((each) => takesTunnels(each) && each.spec.region === region.spec.id)
    if (!isActive) throw refusal('no_active_endpoint', `region ${regionId} has no active endpoint with edges`)
  }

  async function whenReady({ metadata }: Tunnel, scope: Scope): Promise<Tunnel> {
    const settled = (signal: AbortSignal) => tunnels.waitFor(metadata, outcomeOf(metadata.uid), signal)
    const ready = await withinBudget(BUDGET_MS, (signal) => firstOf(signal, [settled, scopes.endOf(scope)]))
    if (ready) return ready
    throw tooLate('the tunnel did not become ready in time; try again in 5 s')
  }

  return route({
    method: 'post',
    path: TUNNELS_PATH,
    on: ['shared'],
    id: 'createTunnel',
    summary: 'Create a tunnel; the answer has its URL and the command that connects it.',
    params: NamespaceParams,
    body: CreateTunnelBody,
    checkBody: checkNewConfig,
    idempotent: true,
    replies: { 201: TunnelData },
    async handle({ principal, params, body, idempotencyKey: key, requestId, sourceIp }) {
      const scope = await scopes.ofPath(principal, params)
      const { namespace } = scope
      await scopes.require(principal, { verb: 'create', resource: 'tunnels', namespace })
      const name = objectName('t', { namespace, user: principal.user, key })
      const hash = requestHash(body)
      // The store is asked, not the cache: another API server may have made it just now. What was granted is not refused when it is repeated.
      const earlier = key === undefined ? undefined : await store.get(Tunnel, { namespace, name })
      if (earlier) sameRequest<typeof Tunnel>(earlier, hash)
      else requireEndpoint(body.regionId)
      const expiresAt = body.ttl === undefined ? undefined : new Date(now().getTime() + body.ttl * 1_000).toISOString()
      using places = new DisposableStack()
      places.use(quota.reserve({ namespace, name }))
      const draft = newTunnel({ namespace, name, createdBy: principal.user, expiresAt, now: now() }, body)
      const { object, created } = await createOnce(store, Tunnel, draft, hash)
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      try {
        return await deps.answer(201, await whenReady(object, scope), { principal, scope })
      } catch (error) {
        if (created && (key === undefined || (error instanceof ApiError && error.code !== 'unavailable'))) {
          await discard(object, { principal, requestId, sourceIp })
        }
        throw error
      }
    },
  })

  /** A final no leaves nothing, and neither does running out of time when nobody can ask for the same tunnel again. */
  async function discard(before: Tunnel, by: Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>): Promise<void> {
    const { metadata } = before
    try {
      await store.delete(Tunnel, metadata, { uid: metadata.uid })
      await audit.record({ ...by, action: 'delete', before })
    } catch {
      // Gone already, or the store is away: the answer is the first error all the same.
    }
  }
}

interface About {
  readonly namespace: string
  readonly name: string
  readonly createdBy: string
  readonly expiresAt: string | undefined
  readonly now: Date
}

/** Pure. */
function newTunnel({ namespace, name, createdBy, expiresAt, now }: About, body: CreateTunnelBody): Draft<typeof Tunnel> {
  return {
    metadata: {
      namespace,
      name,
      finalizers: [FINALIZER],
      annotations: { [annotations.createdBy]: createdBy, ...createdNow(now) },
    },
    spec: {
      regionId: body.regionId,
      displayName: body.name,
      ...(body.config && { config: body.config }),
      ...(expiresAt !== undefined && { expiresAt }),
    },
  }
}
