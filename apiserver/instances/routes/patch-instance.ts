import type { Patch } from '../../../store/port.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { settled } from '../../resources/cache-waits.ts'
import { changeSpec } from '../../resources/change-spec.ts'
import { expiryOf, PatchInstanceBody, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { mustHaveRoom, mustStay } from '../instance-lookup.ts'
import { isSwitched } from '../instance-verdict.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** The merge patch of the spec that a body means, where the spec is that now. */
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

/** In UTC; a time that is there already, however it is written, is left as it is. */
const timeAs = (wished: string, now: string | undefined): string =>
  now !== undefined && Date.parse(now) === Date.parse(wished) ? now : new Date(wished).toISOString()

/** `PATCH /v1/instances/{id}`: answers once a switch is carried out; 202 when that takes longer than a request may. */
export function patchInstance({ store, instances, now, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'patch',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'patchInstance',
    summary: 'Switch a database off or on, rename it, or set when it expires.',
    description:
      'A JSON merge patch (RFC 7396). 202 when a switch is still under way after 25 seconds. One that changes nothing writes nothing.',
    conditional: true,
    params: InstanceParams,
    body: PatchInstanceBody,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, body, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      mustStay(instance)
      if (body.isEnabled !== undefined) mustHaveRoom(instance)
      if (body.expiresAt) requireAhead(body.expiresAt, now())
      const wanted = body.ttl === undefined ? body : { ...body, expiresAt: expiryOf({ ttl: body.ttl }, now()) }
      const specOf = ({ spec }: SharedInstance) => specPatch(wanted, spec)
      const { before, after: patched, isChanged } = await changeSpec(store, SharedInstance, { found: instance, ifMatch, specOf })
      const recorded = isChanged && audit.record({ principal, requestId, sourceIp, action: 'update', before, after: patched })
      const { generation } = patched.metadata
      // At the least the cache must have caught up, so that a GET after this answer shows it.
      const isInForce = (seen: SharedInstance) =>
        body.isEnabled === undefined ? seen.metadata.generation >= generation : isSwitched(seen, generation)
      const done = await waits.changed(patched, isInForce, arrivedAt)
      await recorded
      return done ? answer.plain(200, await settled(instances, done)) : answer.plain(202, patched)
    },
  })
}
