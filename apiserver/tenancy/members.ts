import { createHash } from 'node:crypto'
import { z } from 'zod'
import { RoleBinding } from '../../crds/core.ts'
import type { Draft } from '../../crds/kind.ts'
import { clusterRoleOf, isReserved, labels, type Role, ROLES } from '../../crds/names.ts'
import { createdNow } from '../resources/timestamps.ts'
import { NO_CONTROLS, NO_CONTROLS_RULE } from '../http/query.ts'

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

export const MemberView = z.object({ subject: z.string(), role: z.enum(ROLES) }).meta({ id: 'Member' })
export type MemberView = z.output<typeof MemberView>

/** Returns the name of a member's RoleBinding: a hash, because a subject may contain characters that a name may not. */
export function memberName(subject: string): string {
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
export function memberView({ metadata, roleRef, subjects }: RoleBinding): MemberView | undefined {
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
