import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { requireQuota, requireTemplate, requireNotDeleting } from '../instance-lookup.ts'
import { raiseVersion } from '../../resources/raise-version.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

/** `POST /v1/instances/{id}/reset`: restores the initial content of the database; 202 when that takes longer than the time budget. */
export function resetInstance(deps: InstanceDeps): AnyRoute {
  const { store, audit, find, waits, answer } = deps
  return route({
    method: 'post',
    path: '/v1/instances/{id}/reset',
    on: ['shared'],
    id: 'resetInstance',
    summary: 'Empty the database, or copy its template again; the credentials stay.',
    description: [
      '409 when its template is deleted. 202 when the reset takes longer than 25 seconds: a template is copied once it has no sessions.',
      'Other changes do not wait for such a reset.',
    ].join(' '),
    conditional: true,
    params: InstanceParams,
    replies: { 200: InstanceData, 202: InstanceData },
    async handle({ principal, params, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      requireNotDeleting(instance)
      requireQuota(instance)
      await requireTemplate(deps, instance)
      const { before, after } = await raiseVersion(store, { found: instance, ifMatch }, 'resetVersion')
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const settled = ({ status }: SharedInstance) => (status?.resetVersion ?? 0) >= after.spec.resetVersion
      const done = await waits.changed(after, settled, arrivedAt)
      await recorded
      return done ? answer.plain(200, done) : answer.plain(202, after)
    },
  })
}
