import type { Patch, Store } from '../../../store/port.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { settled } from '../../resources/cache-waits.ts'
import { changeSpec, type ChangedSpec, type SpecChange } from '../../resources/conditional-writes.ts'
import { expiryOf, PatchInstanceBody, requireAhead } from '../instance-body.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { requireNotDeleting, requireQuota, requireTemplate } from '../instance-lookup.ts'
import { InstanceView } from '../instance-view.ts'
import { isSwitched, retryLater } from '../instance-waits.ts'
import { type AnyRoute, fixedFields, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const
const ROTATION_NEEDS = [...NEEDS, { verb: 'get', resource: 'secrets' }] as const

const ANOTHER = 'create another instance'
const FIXED = fixedFields(InstanceView, PatchInstanceBody, {
  motor: ANOTHER,
  region: ANOTHER,
  template: ANOTHER,
  password: 'POST …/password sets a new one',
  extensions: 'POST …/extensions installs one',
})

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
    fixed: FIXED,
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
      const instance = await find(principal, params.id, ROTATION_NEEDS)
      requireNotDeleting(instance)
      requireQuota(instance)
      const raised = await raiseVersion(store, { found: instance, ifMatch }, 'passwordVersion')
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', ...raised })
      const { passwordVersion } = raised.after.spec
      const settled = ({ status }: SharedInstance) => (status?.passwordVersion ?? 0) >= passwordVersion
      const done = await waits.changed(raised.after, settled, arrivedAt)
      await recorded
      if (!done) throw retryLater('the new password is not in force yet; try again in 5 s')
      return answer.withCredentials(200, done, arrivedAt)
    },
  })
}

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

type Found = Pick<SpecChange<typeof SharedInstance>, 'found' | 'ifMatch'>

/**
 * Increments a counter in an instance's spec by one, and repeats that after a conflict with another writer.
 * @throws ApiError `not_found`; `conflict` when the instance is being deleted or has no version of `ifMatch`; `unavailable`; StoreError
 */
function raiseVersion(
  store: Store,
  of: Found,
  counter: 'passwordVersion' | 'resetVersion',
): Promise<ChangedSpec<typeof SharedInstance>> {
  return changeSpec(store, SharedInstance, { ...of, specOf: ({ spec }) => ({ [counter]: spec[counter] + 1 }) })
}
