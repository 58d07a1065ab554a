import { expect, test } from 'vitest'
import { CLUSTER_ROLES, type ClusterRole } from './roles.ts'

/** All rights of a role, as `verb group/resource`. */
function rightsOf({ rules }: ClusterRole): string[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`))),
  )
}

test('each role has all rights of the weaker role, and more', () => {
  for (const [i, role] of CLUSTER_ROLES.slice(1).entries()) {
    const weaker = CLUSTER_ROLES[i]
    if (!weaker) continue
    expect(rightsOf(role)).toEqual(expect.arrayContaining(rightsOf(weaker)))
    expect(rightsOf(role).length).toBeGreaterThan(rightsOf(weaker).length)
  }
})

test.each(CLUSTER_ROLES)('$name names no wildcard and no subresource, so no status', ({ rules }) => {
  for (const { apiGroups, resources, verbs } of rules) {
    for (const name of [...apiGroups, ...resources, ...verbs]) expect(name).not.toMatch(/[*]|\//)
  }
})

test('no role lists or writes Secrets', () => {
  const secrets = CLUSTER_ROLES.flatMap((role) => rightsOf(role).filter((right) => right.endsWith('/secrets')))
  expect(new Set(secrets)).toEqual(new Set(['get /secrets']))
})
