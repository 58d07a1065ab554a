import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { mustHaveRoom, mustHaveTemplate, mustStay } from '../instance-lookup.ts'
import { raiseVersion } from '../../resources/raise-version.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** `POST /v1/instances/{id}/reset`: the database as it was at first; 202 when that takes longer than a request may. */
export function resetInstance(deps: InstanceDeps): AnyRoute {
  const { store, audit, find, waits, answer } = deps
  return route({
    method: 'post',
    path: '/v1/instances/{id}/reset',
    on: ['shared'],
    id: 'resetInstance',
    summary: 'Empty the database, or copy its template again; the credentials stay.',
    description: [
      '409 when its template is gone. 202 when it is still under way after 25 seconds: a template is copied once nobody is in it.',
      'A reset that waits for that keeps nothing else waiting.',
    ].join(' '),
    conditional: true,
    params: InstanceParams,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      mustStay(instance)
      mustHaveRoom(instance)
      await mustHaveTemplate(deps, instance)
      const { before, after } = await raiseVersion(store, { found: instance, ifMatch }, 'resetVersion')
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const settled = ({ status }: SharedInstance) => (status?.resetVersion ?? 0) >= after.spec.resetVersion
      const done = await waits.changed(after, settled, arrivedAt)
      await recorded
      return done ? answer.plain(200, done) : answer.plain(202, after)
    },
  })
}
