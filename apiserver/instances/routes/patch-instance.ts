import type { Patch } from '../../../store/port.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { settled } from '../../resources/cache-waits.ts'
import { changeSpec } from '../../resources/conditional-writes.ts'
import { expiryOf, PatchInstanceBody, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { requireNotDeleting, requireQuota } from '../instance-lookup.ts'
import { isSwitched } from '../instance-outcome.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** Returns the merge patch of the spec for a body; `now` is the current spec. */
export function specPatch(
  { identifier, isEnabled, expiresAt }: Omit<PatchInstanceBody, 'ttl'>,
  now?: SharedInstance['spec'],
): Patch {
  return {
    ...(identifier !== undefined && { identifier }),
    ...(isEnabled !== undefined && { enabled: isEnabled }),
    ...(expiresAt !== undefined && { expiresAt: expiresAt && timeAs(expiresAt, now?.expiresAt) }),
  }
}

/** Returns the time in UTC, or the current text if it means the same time. */
const timeAs = (wanted: string, now: string | undefined): string =>
  now !== undefined && Date.parse(now) === Date.parse(wanted) ? now : new Date(wanted).toISOString()

/** `PATCH /v1/instances/{id}`: answers once the database is switched off or on; 202 when that takes longer than the time budget. */
export function patchInstance({ store, instances, now, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'patch',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'patchInstance',
    summary: 'Switch a database off or on, rename it, or set when it expires.',
    description:
      'A JSON merge patch (RFC 7396). 202 when switching off or on takes longer than 25 seconds. A patch without a change writes nothing.',
    conditional: true,
    params: InstanceParams,
    body: PatchInstanceBody,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, body, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      requireNotDeleting(instance)
      if (body.isEnabled !== undefined) requireQuota(instance)
      if (body.expiresAt) requireAhead(body.expiresAt, now())
      const wanted = body.ttl === undefined ? body : { ...body, expiresAt: expiryOf({ ttl: body.ttl }, now()) }
      const specOf = ({ spec }: SharedInstance) => specPatch(wanted, spec)
      const { before, after: patched, isChanged } = await changeSpec(store, SharedInstance, { found: instance, ifMatch, specOf })
      const recorded = isChanged && audit.record({ principal, requestId, sourceIp, action: 'update', before, after: patched })
      const { generation } = patched.metadata
      // The cache must have the change, so that a GET after this answer shows it.
      const isInForce = (seen: SharedInstance) =>
        body.isEnabled === undefined ? seen.metadata.generation >= generation : isSwitched(seen, generation)
      const done = await waits.changed(patched, isInForce, arrivedAt)
      await recorded
      return done ? answer.plain(200, await settled(instances, done)) : answer.plain(202, patched)
    },
  })
}
