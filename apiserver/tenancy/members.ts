import { createHash } from 'node:crypto'
import { z } from 'zod'
import { RoleBinding } from '../../crds/core.ts'
import type { Draft } from '../../crds/kind.ts'
import { clusterRoleOf, isReserved, labels, type Role, ROLES } from '../../crds/names.ts'
import { createdNow } from '../resources/names-and-times.ts'
import { NO_CONTROLS, NO_CONTROLS_RULE } from '../http/request-parser.ts'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type AnyRoute, LISTENERS, type Reply, route } from '../http/route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams, Nothing, type TenancyDeps } from './tenancy-deps.ts'
import { ignoringGone, isStoreError } from '../../store/port.ts'
import type { AuditedRequest } from '../journal/audit.ts'
import { untilGone, untilKnown } from '../resources/cache-waits.ts'
import { ApiError } from '../http/errors.ts'
import { type IfMatch, requireExpected, deleteExpected } from '../resources/conditional-writes.ts'

/** Value of the label managed-by on RoleBindings that this API creates; other RoleBindings are not members. */
const MANAGED_BY = 'mooring-apiserver'

export const Subject = z
  .string()
  .min(1)
  .max(256)
  .regex(NO_CONTROLS, NO_CONTROLS_RULE)
  .refine((subject) => !isReserved(subject), 'must be the user of an issuer: names with system: and mooring: are reserved')
  .describe('User name: `{issuer}:{sub}`, percent-encoded.')
  .meta({ examples: ['local:ada'] })

const MemberView = z.object({ subject: z.string(), role: z.enum(ROLES) }).meta({ id: 'Member' })
type MemberView = z.output<typeof MemberView>

/** Returns the name of a member's RoleBinding: a hash, because a subject may contain characters that a name may not. */
function memberName(subject: string): string {
  return `member-${createHash('sha256').update(subject).digest('hex').slice(0, 32)}`
}

export function newMember(namespace: string, { subject, role }: MemberView, now: Date): Draft<typeof RoleBinding> {
  return {
    metadata: {
      name: memberName(subject),
      namespace,
      labels: { [labels.managedBy]: MANAGED_BY },
      annotations: createdNow(now),
    },
    roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: clusterRoleOf(role) },
    subjects: [{ kind: 'User', apiGroup: RoleBinding.group, name: subject }],
  }
}

/** Returns the member of a RoleBinding; undefined when this API did not create it. */
function memberView({ metadata, roleRef, subjects }: RoleBinding): MemberView | undefined {
  const [subject] = subjects
  const role = ROLES.find((each) => clusterRoleOf(each) === roleRef.name)
  if (metadata.labels?.[labels.managedBy] !== MANAGED_BY || !subject || !role) return undefined
  return memberName(subject.name) === metadata.name ? { subject: subject.name, role } : undefined
}

/** Whether each role has a RoleBinding for its group, which API tokens and role tokens carry. */
export function areRolesBound(bindings: readonly RoleBinding[], groupOf: (role: Role) => string): boolean {
  return ROLES.every((role) =>
    bindings.some(
      ({ roleRef, subjects }) =>
        roleRef.name === clusterRoleOf(role) && subjects.some(({ kind, name }) => kind === 'Group' && name === groupOf(role)),
    ),
  )
}

/** `GET …/members`: members created through this API; RoleBindings created with kubectl are not listed. */
export function listMembers({ scopes, roleBindings }: Pick<TenancyDeps, 'scopes' | 'roleBindings'>): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/members`,
    on: LISTENERS,
    id: 'listMembers',
    summary: 'List the members of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('members', MemberView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'rolebindings', namespace })
      const members = roleBindings.list({ namespace }).flatMap((binding) => {
        const member = memberView(binding)
        return member ? [{ member, metadata: binding.metadata }] : []
      })
      const { items, nextCursor } = page(members, query, resourceKey)
      return { status: 200, data: { members: items.map(({ member }) => member), nextCursor } }
    },
  })
}

const MemberData = z.object({ member: MemberView })
/** Maximum number of attempts; each fails only when another request changes the same member at the same time. */
const ATTEMPTS = 5

type PutDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'roleBindings' | 'audit' | 'now'>

interface MemberChange {
  readonly namespace: string
  readonly member: MemberView
  readonly ifMatch: IfMatch | undefined
  readonly by: Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>
}

/** `PUT …/members/{subject}`: 201 for a new member, 200 for an existing one. */
export function putMember({ store, scopes, roleBindings, audit, now }: PutDeps): AnyRoute {
  /** Deletes the RoleBinding at this version only, so that a concurrent change is not overwritten unseen. */
  async function remove({ metadata }: RoleBinding): Promise<void> {
    const { uid, resourceVersion } = metadata
    await ignoringGone(store.delete(RoleBinding, metadata, { uid, resourceVersion }))
  }

  /** Sets the role. Undefined when another request changes the member at the same time: the caller tries again. */
  async function attempt({ namespace, member, ifMatch, by }: MemberChange): Promise<Pick<Reply, 'status' | 'etag'> | undefined> {
    const before = await store.get(RoleBinding, { namespace, name: memberName(member.subject) })
    requireExpected(before?.metadata.resourceVersion, ifMatch)
    if (before && memberView(before)?.role === member.role) {
      await untilKnown(roleBindings, before, scopes.rejectWhenDeleted({ namespace }))
      return { status: 200, etag: before.metadata.resourceVersion }
    }
    const after = await replace(before, newMember(namespace, member, now()))
    if (!after) return undefined
    await audit.record({ ...by, action: before ? 'update' : 'create', before, after })
    await untilKnown(roleBindings, after, scopes.rejectWhenDeleted({ namespace }))
    return { status: before ? 200 : 201, etag: after.metadata.resourceVersion }
  }

  /** Replaces a RoleBinding, because its role is immutable. Between the two writes the member has no role, which is the safe side. */
  async function replace(before: RoleBinding | undefined, draft: Draft<typeof RoleBinding>): Promise<RoleBinding | undefined> {
    try {
      if (before) await remove(before)
      return await store.create(RoleBinding, draft)
    } catch (error) {
      if (isStoreError(error, 'already_exists') || isStoreError(error, 'conflict')) return undefined
      throw error
    }
  }

  return route({
    method: 'put',
    path: `${NAMESPACE_PATH}/members/{subject}`,
    on: LISTENERS,
    id: 'putMember',
    summary: 'Give a user a role in a namespace.',
    conditional: true,
    params: z.object({ ...NamespaceParams.shape, subject: Subject }),
    body: z.object({ role: z.enum(ROLES) }).meta({ id: 'PutMember', examples: [{ role: 'editor' }] }),
    replies: { 200: MemberData, 201: MemberData },
    async handle({ principal, params: { subject, ...slugs }, body: { role }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'create', resource: 'rolebindings', namespace })
      const member = { subject, role }
      for (let tries = 1; tries <= ATTEMPTS; tries++) {
        const done = await attempt({ namespace, member, ifMatch, by: { principal, requestId, sourceIp } })
        if (done) return { ...done, data: { member } }
      }
      throw new ApiError('conflict', 'other requests keep changing this member; try again')
    },
  })
}

type DeleteDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'roleBindings' | 'audit'>

/** `DELETE …/members/{subject}`: also for the last admin; a platform admin can always add one. */
export function deleteMember({ store, scopes, roleBindings, audit }: DeleteDeps): AnyRoute {
  return route({
    method: 'delete',
    path: `${NAMESPACE_PATH}/members/{subject}`,
    on: LISTENERS,
    id: 'deleteMember',
    summary: 'Remove a user’s role in a namespace.',
    conditional: true,
    params: z.object({ ...NamespaceParams.shape, subject: Subject }),
    replies: { 200: Nothing },
    async handle({ principal, params: { subject, ...slugs }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'delete', resource: 'rolebindings', namespace })
      const binding = await store.get(RoleBinding, { namespace, name: memberName(subject) })
      if (!binding || !memberView(binding)) throw new ApiError('not_found', `${subject} is not a member of this namespace`)
      await deleteExpected(store, RoleBinding, binding, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: binding })
      await untilGone(roleBindings, binding)
      return { status: 200, data: {} }
    },
  })
}
