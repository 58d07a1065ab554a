import type { Patch } from '../../store/port.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { PatchInstanceBody, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { mustStay } from '../instance-lookup.ts'
import { isSwitched } from '../instance-verdict.ts'
import { type AnyRoute, route } from '../route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** The merge patch of the resource that a body means. */
export function specPatch({ identifier, isEnabled, expiresAt }: PatchInstanceBody): Patch {
  return {
    spec: {
      ...(identifier !== undefined && { identifier }),
      ...(isEnabled !== undefined && { enabled: isEnabled }),
      ...(expiresAt !== undefined && { expiresAt: expiresAt && new Date(expiresAt).toISOString() }),
    },
  }
}

/** `PATCH /v1/instances/{id}`: answers once a switch is carried out; 202 when that takes longer than a request may. */
export function patchInstance({ store, now, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'patch',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'patchInstance',
    summary: 'Switch a database off or on, rename it, or set when it expires.',
    description: 'A JSON merge patch (RFC 7396). 202 when a switch is still under way after 25 seconds.',
    conditional: true,
    params: InstanceParams,
    body: PatchInstanceBody,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, body, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      mustStay(instance)
      const { metadata } = instance
      if (body.expiresAt) requireAhead(body.expiresAt, now())
      const patched = await store.mergePatch(SharedInstance, metadata, specPatch(body), {
        uid: metadata.uid,
        resourceVersion: ifMatch,
      })
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', before: instance, after: patched })
      const { generation } = patched.metadata
      // At the least the cache must have caught up, so that a GET after this answer shows it.
      const settled = (seen: SharedInstance) =>
        body.isEnabled === undefined ? seen.metadata.generation >= generation : isSwitched(seen, generation)
      const done = await waits.changed(patched, settled, arrivedAt)
      await recorded
      return done ? answer.plain(200, done) : answer.plain(202, patched)
    },
  })
}
