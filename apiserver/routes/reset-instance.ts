import type { SharedInstance } from '../../crds/shared-instance.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { mustHaveRoom, mustStay } from '../instance-lookup.ts'
import { raiseVersion } from '../raise-version.ts'
import { type AnyRoute, route } from '../route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** `POST /v1/instances/{id}/reset`: the database as it was at first; 202 when that takes longer than a request may. */
export function resetInstance({ store, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'post',
    path: '/v1/instances/{id}/reset',
    on: ['shared'],
    id: 'resetInstance',
    summary: 'Empty the database, or copy its template again; the credentials stay.',
    params: InstanceParams,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      mustStay(instance)
      mustHaveRoom(instance)
      const { before, after } = await raiseVersion(store, instance, 'resetVersion')
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const settled = ({ status }: SharedInstance) => (status?.resetVersion ?? 0) >= after.spec.resetVersion
      const done = await waits.changed(after, settled, arrivedAt)
      await recorded
      return done ? answer.plain(200, done) : answer.plain(202, after)
    },
  })
}
