import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { requireQuota, requireNotDeleting } from '../instance-lookup.ts'
import { retryLater } from '../instance-verdict.ts'
import { raiseVersion } from '../../resources/raise-version.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [
  { verb: 'patch', resource: 'sharedinstances' },
  { verb: 'get', resource: 'secrets' },
] as const

/** `POST /v1/instances/{id}/password`: sets a new password, which is in force when the answer is sent. */
export function rotatePassword({ store, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'post',
    path: '/v1/instances/{id}/password',
    on: ['shared'],
    id: 'rotatePassword',
    summary: 'Replace the password; the answer has the new one.',
    description: 'The old password no longer works when the answer is sent.',
    conditional: true,
    params: InstanceParams,
    replies: { 200: InstanceData },
    async handle({ principal, params, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      requireNotDeleting(instance)
      requireQuota(instance)
      const raised = await raiseVersion(store, { found: instance, ifMatch }, 'passwordVersion')
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', ...raised })
      const { passwordVersion } = raised.after.spec
      const settled = ({ status }: SharedInstance) => (status?.passwordVersion ?? 0) >= passwordVersion
      const done = await waits.changed(raised.after, settled, arrivedAt)
      await recorded
      if (!done) throw retryLater('the new password is not in force yet; try again in 5 s')
      return answer.withCredentials(200, done)
    },
  })
}
