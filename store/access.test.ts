import { afterAll, describe, expect, test } from 'vitest'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import type { Kind, Resource } from '../crds/kind.ts'
import { clusterRoleOf, labels, PLATFORM_ADMIN_GROUP, PLATFORM_ADMIN_ROLE, roleGroup } from '../crds/names.ts'
import { type Access, type Question, bindingIndexes, createRoleAccess } from './access.ts'
import { type Cache, createCache } from './cache.ts'
import type { Store } from './port.ts'

const stop = new AbortController()
afterAll(() => {
  stop.abort()
})

/** Cache with exactly these objects. */
function cacheOf<K extends Kind>(kind: K, items: readonly unknown[], indexes = {}): Cache<K> {
  const store = {
    list: () => Promise.resolve({ items, resourceVersion: '1' }),
    watch: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }),
  }
  const cache = createCache({ store: store as unknown as Store, kind, indexes })
  void cache.run(stop.signal)
  return cache
}

let serial = 0
function metadata(name: string, namespace?: string) {
  serial += 1
  return {
    name,
    uid: `uid-${serial}`,
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '',
    ...(namespace && { namespace }),
  }
}

const tenant = (organization: string, slug: string) => ({
  metadata: {
    ...metadata(`${organization}--${slug}`),
    labels: { [labels.organization]: organization, [labels.namespace]: slug },
  },
})

/** `User:local:alice` bound to a role, in a namespace or everywhere. */
function binding(subject: string, role: string, namespace?: string, refKind = 'ClusterRole') {
  const [, kind, name] = /^(\w+):(.*)$/.exec(subject) ?? []
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: refKind, name: role }
  return { metadata: metadata(`b${serial}`, namespace), roleRef, subjects: [{ kind, name }] }
}

function accessWith(inNamespaces: readonly unknown[], everywhere: readonly unknown[] = []): Access {
  const namespaces = [
    tenant('acme', 'test'),
    tenant('acme', 'prod'),
    tenant('zeta', 'prod'),
    { metadata: metadata('mooring-system') },
  ]
  return createRoleAccess({
    roleBindings: cacheOf(RoleBinding, inNamespaces, bindingIndexes),
    clusterRoleBindings: cacheOf(ClusterRoleBinding, everywhere, bindingIndexes),
    namespaces: cacheOf(Namespace, namespaces),
  })
}

const prod = 'acme--prod'
const caller = (user: string, ...groups: string[]) => ({ user, groups })
const may = (access: Access, user: string, question: string) => access.may(caller(user), parse(question))

/** `create sharedinstances in acme--prod` */
function parse(text: string): Question {
  const [, verb = '', resource = '', namespace] = /^(\w+) (\S+)(?: in (\S+))?$/.exec(text) ?? []
  return { verb: verb as Question['verb'], resource, namespace }
}

describe('each role has the rights of its rules, in its namespace', () => {
  const access = accessWith(
    [
      binding('User:viewer', clusterRoleOf('viewer'), prod),
      binding('User:editor', clusterRoleOf('editor'), prod),
      binding('User:admin', clusterRoleOf('admin'), prod),
    ],
    [binding(`User:platform`, PLATFORM_ADMIN_ROLE)],
  )
  test.each([
    { question: `list sharedinstances in ${prod}`, allowed: ['viewer', 'editor', 'admin', 'platform'] },
    { question: `watch tunnels in ${prod}`, allowed: ['viewer', 'editor', 'admin', 'platform'] },
    { question: `list apitokens in ${prod}`, allowed: ['viewer', 'editor', 'admin', 'platform'] },
    { question: `list rolebindings in ${prod}`, allowed: ['viewer', 'editor', 'admin', 'platform'] },
    { question: `create sharedinstances in ${prod}`, allowed: ['editor', 'admin', 'platform'] },
    { question: `delete dedicateddatabases in ${prod}`, allowed: ['editor', 'admin', 'platform'] },
    { question: `get secrets in ${prod}`, allowed: ['editor', 'admin', 'platform'] },
    { question: `create apitokens in ${prod}`, allowed: ['admin', 'platform'] },
    { question: `delete rolebindings in ${prod}`, allowed: ['admin', 'platform'] },
    { question: 'create sharedinstances in acme--test', allowed: ['platform'] },
    { question: 'list sharedinstances', allowed: ['platform'] },
    { question: 'create tenantnamespaces', allowed: ['platform'] },
    { question: 'list namespaces', allowed: ['platform'] },
    { question: 'delete namespaces', allowed: [] },
    { question: 'patch regions', allowed: ['platform'] },
    { question: 'delete tunnelendpoints', allowed: ['platform'] },
    { question: 'create databaseservers in mooring-shared', allowed: ['platform'] },
    { question: `create databaseservers in ${prod}`, allowed: ['platform'] },
    { question: `list secrets in ${prod}`, allowed: [] },
    { question: `patch sharedinstances/status in ${prod}`, allowed: [] },
    { question: `create clusterrolebindings`, allowed: [] },
    { question: `create unknownkinds in ${prod}`, allowed: [] },
  ])('$question: $allowed', async ({ question, allowed }) => {
    const users = ['viewer', 'editor', 'admin', 'platform', 'unbound']
    const answers = await Promise.all(users.map((user) => may(access, user, question)))
    expect(users.filter((_, i) => answers[i])).toEqual(allowed)
  })
})

test('a binding of a group grants no rights to a user of the same name', async () => {
  const group = roleGroup(prod, 'editor')
  const access = accessWith([binding(`Group:${group}`, clusterRoleOf('editor'), prod)])
  const question = parse(`create sharedinstances in ${prod}`)
  expect(await access.may(caller('token:1', 'other', group), question)).toBe(true)
  expect(await access.may(caller(group), question)).toBe(false)
})

test.each([
  { does: 'a Role instead of a ClusterRole', roles: [binding('User:x', clusterRoleOf('admin'), prod, 'Role')] },
  { does: 'a ClusterRole that is not Mooring’s', roles: [binding('User:x', 'cluster-admin', prod)] },
  { does: 'a service account of that name', roles: [binding('ServiceAccount:x', clusterRoleOf('admin'), prod)] },
])('a binding with $does grants nothing', async ({ roles }) => {
  const access = accessWith(roles)
  expect(await may(access, 'x', `list sharedinstances in ${prod}`)).toBe(false)
  expect(await access.memberships(caller('x'))).toEqual([])
})

test('a platform role bound in a namespace grants nothing at cluster scope', async () => {
  const access = accessWith([binding('User:x', PLATFORM_ADMIN_ROLE, prod)])
  expect(await may(access, 'x', `create apitokens in ${prod}`)).toBe(true)
  expect(await may(access, 'x', 'create regions')).toBe(false)
})

test('memberships has the strongest role of user and groups in each labelled namespace, in order', async () => {
  const access = accessWith([
    binding('User:x', clusterRoleOf('viewer'), 'zeta--prod'),
    binding('User:x', clusterRoleOf('viewer'), prod),
    binding('Group:g', clusterRoleOf('admin'), prod),
    binding('User:x', clusterRoleOf('editor'), prod),
    binding('User:x', clusterRoleOf('admin'), 'mooring-system'),
    binding('User:x', clusterRoleOf('admin'), 'namespace-that-went'),
    binding('User:y', clusterRoleOf('admin'), 'acme--test'),
  ])
  expect(await access.memberships(caller('x', 'g'))).toEqual([
    { organization: 'acme', namespace: 'prod', role: 'admin' },
    { organization: 'zeta', namespace: 'prod', role: 'viewer' },
  ])
  expect(await access.memberships(caller('unbound'))).toEqual([])
})

test('a platform admin is admin of every labelled namespace', async () => {
  const access = accessWith([], [binding(`Group:${PLATFORM_ADMIN_GROUP}`, PLATFORM_ADMIN_ROLE)])
  expect(await access.memberships(caller('x', PLATFORM_ADMIN_GROUP))).toEqual([
    { organization: 'acme', namespace: 'prod', role: 'admin' },
    { organization: 'acme', namespace: 'test', role: 'admin' },
    { organization: 'zeta', namespace: 'prod', role: 'admin' },
  ])
})

test('an answer reads only the bindings of the caller in the namespace', async () => {
  const others = Array.from({ length: 10_000 }, (_, i) => binding(`User:u${i}`, clusterRoleOf('admin'), prod))
  const mine = Array.from({ length: 1000 }, (_, i) => binding('User:x', clusterRoleOf('viewer'), `n${i}`))
  const roleBindings = cacheOf(
    RoleBinding,
    [...others, ...mine, binding('User:x', clusterRoleOf('editor'), prod)],
    bindingIndexes,
  )
  let read = 0
  const counting: Cache<typeof RoleBinding> = {
    ...roleBindings,
    list: () => expect.fail('a scan'),
    byIndex: (index, value) => {
      const found: readonly Resource<typeof RoleBinding>[] = roleBindings.byIndex(index, value)
      read += found.length
      return found
    },
  }
  const access = createRoleAccess({
    roleBindings: counting,
    clusterRoleBindings: cacheOf(ClusterRoleBinding, [], bindingIndexes),
    namespaces: cacheOf(Namespace, []),
  })
  expect(await may(access, 'x', `create sharedinstances in ${prod}`)).toBe(true)
  expect(read).toBe(1)
})
