import type { Draft } from '../../../crds/kind.ts'
import { annotations, FINALIZER } from '../../../crds/names.ts'
import { Tunnel, TunnelReason } from '../../../crds/tunnel.ts'
import { regionWithNumber } from '../../../crds/region.ts'
import { endpointsInForce, takesTunnels } from '../../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../../store/conditions.ts'
import type { AuditedRequest } from '../../journal/audit.ts'
import { firstOf, withinBudget } from '../../resources/cache-waits.ts'
import { createdNow } from '../../resources/names-and-times.ts'
import { ApiError } from '../../http/errors.ts'
import { createOnce, objectName, requestHash, sameRequest } from '../../resources/creations.ts'
import { retryLater } from '../../instances/instance-waits.ts'
import { type AnyRoute, route, type Scope } from '../../http/route.ts'
import { NamespaceParams } from '../../tenancy/tenancy-deps.ts'
import { hasAllHeaderValues, newItems, withItems } from '../header-values.ts'
import { checkNewConfig, CreateTunnelBody } from '../tunnel-body.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { TUNNELS_PATH } from '../tunnel-lookup.ts'

/** Time budget for the hostname and the certificate, in milliseconds. */
const BUDGET_MS = 25_000

/** Final reasons of a tunnel that the operator rejects, with the code of the answer. */
const REJECTIONS: ReadonlyMap<string, RejectionCode> = new Map<string, RejectionCode>([
  [TunnelReason.UnknownRegion, 'unknown_region'],
  [TunnelReason.NoActiveEndpoint, 'no_active_endpoint'],
  // Possible when two API servers, or one and kubectl, create tunnels at the same time.
  [TunnelReason.QuotaExceeded, 'quota_exceeded'],
])

type RejectionCode = 'unknown_region' | 'no_active_endpoint' | 'quota_exceeded'

function rejection(code: RejectionCode, message: string): ApiError {
  return new ApiError(code, message, { details: code === 'quota_exceeded' ? [] : [{ field: 'regionId', message }] })
}

/**
 * Returns a check for `waitFor` with the result of a creation; undefined while it is in progress.
 * @throws (from the function) ApiError when the operator rejects the tunnel or another request deletes it
 */
function outcomeOf(uid: string): (tunnel: Tunnel | undefined) => Tunnel | undefined {
  let seen = false
  return function outcome(tunnel) {
    const isIt = tunnel?.metadata.uid === uid
    // The cache may not have the tunnel yet: only a tunnel seen before is deleted.
    if (isIt ? tunnel.metadata.deletionTimestamp !== undefined : seen)
      throw new ApiError('conflict', 'another request deleted this tunnel meanwhile')
    seen = isIt
    return isIt ? settledTunnel(tunnel) : undefined
  }
}

/** Returns the tunnel when it is ready, or has a hostname and waits for its certificate, and its header values are known. @throws ApiError when the operator rejects it */
function settledTunnel(tunnel: Tunnel): Tunnel | undefined {
  const condition = conditionOf(tunnel, 'Ready')
  if (!condition || (condition.observedGeneration ?? 0) < tunnel.metadata.generation) return undefined
  if (condition.status === 'True' || awaitsCertificate(tunnel, condition.reason)) {
    return hasAllHeaderValues(tunnel) ? tunnel : undefined
  }
  const code = REJECTIONS.get(condition.reason)
  if (code) throw rejection(code, condition.message)
  return undefined
}

/** Whether the tunnel has a hostname, and its certificate has failed or comes from a public CA. The answer shows the state of the certificate. */
const awaitsCertificate = ({ status }: Tunnel, reason: string): boolean =>
  status?.hostname !== undefined && reason === TunnelReason.ObtainingCertificate

/** `POST …/tunnels`: creates the resource and answers once the hostname is assigned and the certificate issued, or ordered at a public CA (docs/api.md, "Tunnels"). */
export function createTunnel(deps: TunnelDeps): AnyRoute {
  const { store, scopes, tunnels, regions, endpoints, headers, quota, audit, now } = deps

  /** Checks region and endpoint early; the operator's decision counts. @throws ApiError `unknown_region`, `no_active_endpoint` */
  function requireEndpoint(regionId: number): void {
    const region = regionWithNumber(regions.list(), regionId)
    if (!region) throw rejection('unknown_region', `unknown region: ${regionId}; GET /v1/regions lists those that are available`)
    const isActive = endpointsInForce(endpoints.list()).some((each) => takesTunnels(each) && each.spec.region === region.spec.id)
    if (!isActive) throw rejection('no_active_endpoint', `region ${regionId} has no active endpoint with edges`)
  }

  async function whenReady({ metadata }: Tunnel, scope: Scope): Promise<Tunnel> {
    const settled = (signal: AbortSignal) => tunnels.waitFor(metadata, outcomeOf(metadata.uid), signal)
    const ready = await withinBudget(BUDGET_MS, (signal) => firstOf(signal, [settled, scopes.rejectWhenDeleted(scope)]))
    if (ready) return ready
    throw retryLater('the tunnel did not become ready in time; try again in 5 s')
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
      // Reads the store, not the cache: another API server may just have created it. A repeated request is not checked again.
      const earlier = key === undefined ? undefined : await store.get(Tunnel, { namespace, name })
      if (earlier) sameRequest<typeof Tunnel>(earlier, hash)
      else requireEndpoint(body.regionId)
      const expiresAt = expiryOf(body, now())
      using reservations = new DisposableStack()
      reservations.use(quota.reserve({ namespace, name }))
      const draft = newTunnel({ namespace, name, createdBy: principal.user, expiresAt, now: now() }, body)
      const { object, created } = await createOnce(store, Tunnel, draft, hash)
      const items = itemsOf(body)
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: withItems(object, items) })
      try {
        await headers.fill(object, items)
        return await deps.answer(201, await whenReady(object, scope), { principal, scope })
      } catch (error) {
        if (created && (key === undefined || isFinal(error))) {
          await discard(object, { principal, requestId, sourceIp })
        }
        throw error
      }
    },
  })

  /** Deletes a tunnel that the operator rejected, or that ran out of time and that no later request can join. Never throws. */
  async function discard(before: Tunnel, by: Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>): Promise<void> {
    const { metadata } = before
    try {
      await store.delete(Tunnel, metadata, { uid: metadata.uid })
      await audit.record({ ...by, action: 'delete', before })
    } catch {
      // The tunnel is gone already or the store is unavailable. The answer is the first error in both cases.
    }
  }
}

/** Whether a repeated request would fail by the same error. */
const isFinal = (error: unknown): boolean => error instanceof ApiError && error.code !== 'unavailable'

const itemsOf = ({ config }: CreateTunnelBody) => config?.liveHeaderModifications ?? []

interface NewTunnel {
  readonly namespace: string
  readonly name: string
  readonly createdBy: string
  readonly expiresAt: string | undefined
  readonly now: Date
}

const expiryOf = ({ ttl }: CreateTunnelBody, now: Date): string | undefined =>
  ttl === undefined ? undefined : new Date(now.getTime() + ttl * 1_000).toISOString()

/** Returns the Tunnel for a body. Pure. */
function newTunnel({ namespace, name, createdBy, expiresAt, now }: NewTunnel, body: CreateTunnelBody): Draft<typeof Tunnel> {
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
      ...(body.config && {
        config: { ...body.config, liveHeaderModifications: [...newItems(name, body.config.liveHeaderModifications)] },
      }),
      ...(expiresAt !== undefined && { expiresAt }),
    },
  }
}
