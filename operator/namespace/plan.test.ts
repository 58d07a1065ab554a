import { expect, test } from 'vitest'
import type { Namespace, RoleBinding } from '../../crds/core.ts'
import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { planNamespace, type Observed } from './plan.ts'
import { bindingsOf } from './resources.ts'

const NAME = 'acme--prod'
const CLEANUP = ['mooring.dev/cleanup']
const GOING = { deletionTimestamp: '2026-01-02T00:00:00Z' }
const LABELS = { 'mooring.dev/organization': 'acme', 'mooring.dev/namespace': 'prod' }

const metadata = (more: object = {}) => ({
  ...{ name: NAME, uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
  ...more,
})

function tenant(more: object = {}, status?: TenantNamespace['status']): TenantNamespace {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TenantNamespace',
    metadata: metadata({ finalizers: CLEANUP, ...more }),
    spec: { organization: 'acme', namespace: 'prod', displayName: 'Production' },
    ...(status && { status }),
  }
}

function namespace(more: object = {}): Namespace {
  const annotations = { 'mooring.dev/display-name': 'Production' }
  return { apiVersion: 'v1', kind: 'Namespace', metadata: metadata({ uid: 'n-1', labels: LABELS, annotations, ...more }) }
}

const desired = bindingsOf(NAME, { serviceAccounts: false })
const bound = new Map(
  desired.map((binding) => [binding.metadata.name, { ...binding, metadata: metadata(binding.metadata) } as RoleBinding]),
)
const without = (name: string) => new Map([...bound].filter(([known]) => known !== name))
const withChanged = (name: string, change: Partial<RoleBinding>) =>
  new Map([...bound].map(([known, binding]) => [known, known === name ? { ...binding, ...change } : binding]))

const nothing = { tenant: undefined, namespace: undefined, bindings: new Map(), desired, organization: true, blocked: undefined }
const settled = { ...nothing, tenant: tenant({}, { namespaceUid: 'n-1' }), namespace: namespace(), bindings: bound }

const BIND = ['bind mooring-viewer', 'bind mooring-editor', 'bind mooring-admin']

test.each<{ does: string; given: Observed; actions: readonly string[]; reason: string }>([
  {
    does: 'creates Namespace, RoleBindings and organization of a new tenant namespace',
    given: { ...nothing, tenant: tenant(), organization: false },
    actions: ['make-namespace', ...BIND, 'make-organization'],
    reason: 'Bound',
  },
  {
    does: 'adds the finalizer first to a TenantNamespace made with kubectl',
    given: { ...nothing, tenant: tenant({ finalizers: [] }) },
    actions: ['add-finalizer', 'make-namespace', ...BIND],
    reason: 'Bound',
  },
  { does: 'does nothing for a settled tenant namespace', given: settled, actions: [], reason: 'Bound' },
  {
    does: 'continues with a Namespace created before a crash',
    given: { ...settled, tenant: tenant(), bindings: new Map() },
    actions: BIND,
    reason: 'Bound',
  },
  {
    does: 'restores a deleted RoleBinding',
    given: { ...settled, bindings: without('mooring-editor') },
    actions: ['bind mooring-editor'],
    reason: 'Bound',
  },
  {
    does: 'restores a RoleBinding that grants another role',
    given: { ...settled, bindings: withChanged('mooring-viewer', { roleRef: { apiGroup: '', kind: 'ClusterRole', name: 'x' } }) },
    actions: ['bind mooring-viewer'],
    reason: 'Bound',
  },
  {
    does: 'restores a RoleBinding that lost its group',
    given: { ...settled, bindings: withChanged('mooring-viewer', { subjects: [] }) },
    actions: ['bind mooring-viewer'],
    reason: 'Bound',
  },
  {
    does: 'keeps other subjects of a RoleBinding',
    given: {
      ...settled,
      bindings: withChanged('mooring-viewer', {
        subjects: [...(bound.get('mooring-viewer')?.subjects ?? []), { kind: 'User', name: 'corp:ann' }],
      }),
    },
    actions: [],
    reason: 'Bound',
  },
  {
    does: 'restores the labels of its own Namespace',
    given: { ...settled, namespace: namespace({ labels: {} }) },
    actions: ['mark-namespace'],
    reason: 'Bound',
  },
  {
    does: 'updates the display name',
    given: { ...settled, namespace: namespace({ annotations: { 'mooring.dev/display-name': 'Old', kept: 'yes' } }) },
    actions: ['mark-namespace'],
    reason: 'Bound',
  },
  {
    does: 'restores its organization',
    given: { ...settled, organization: false },
    actions: ['make-organization'],
    reason: 'Bound',
  },
  {
    does: 'does nothing to a Namespace without our labels',
    given: { ...settled, tenant: tenant(), namespace: namespace({ labels: {} }), bindings: new Map() },
    actions: [],
    reason: 'NamespaceTaken',
  },
  {
    does: 'waits until an earlier Namespace of its name is deleted',
    given: { ...settled, tenant: tenant(), namespace: namespace(GOING) },
    actions: [],
    reason: 'NamespaceTerminating',
  },
  {
    does: 'deletes the TenantNamespace when its Namespace is being deleted',
    given: { ...settled, namespace: namespace(GOING) },
    actions: ['follow'],
    reason: 'NamespaceGone',
  },
  {
    does: 'deletes the TenantNamespace when its Namespace is gone',
    given: { ...settled, namespace: undefined, bindings: new Map() },
    actions: ['follow'],
    reason: 'NamespaceGone',
  },
  {
    does: 'deletes its Namespace before the finalizer is removed',
    given: { ...settled, tenant: tenant(GOING, { namespaceUid: 'n-1' }) },
    actions: ['delete-namespace'],
    reason: 'Deleting',
  },
  {
    does: 'waits until its Namespace is gone',
    given: { ...settled, tenant: tenant(GOING, { namespaceUid: 'n-1' }), namespace: namespace(GOING) },
    actions: [],
    reason: 'Deleting',
  },
  {
    does: 'reports what delays the deletion of its Namespace',
    given: { ...settled, tenant: tenant(GOING), namespace: namespace(GOING), blocked: '1 instances cannot be cleaned up' },
    actions: [],
    reason: 'CleanupBlocked',
  },
  {
    does: 'removes the finalizer when its Namespace is gone',
    given: { ...settled, tenant: tenant(GOING, { namespaceUid: 'n-1' }), namespace: undefined },
    actions: ['release'],
    reason: 'Deleting',
  },
  {
    does: 'removes the finalizer when the Namespace of its name is not its own',
    given: { ...settled, tenant: tenant(GOING), namespace: namespace({ labels: {} }) },
    actions: ['release'],
    reason: 'Deleting',
  },
  {
    does: 'does nothing without its finalizer',
    given: { ...settled, tenant: tenant({ ...GOING, finalizers: [] }), namespace: undefined },
    actions: [],
    reason: 'Deleting',
  },
  {
    does: 'adopts a Namespace with our labels',
    given: { ...nothing, namespace: namespace() },
    actions: ['adopt'],
    reason: 'Adopted',
  },
  {
    does: 'adopts no Namespace that is being deleted',
    given: { ...nothing, namespace: namespace(GOING) },
    actions: [],
    reason: 'Gone',
  },
  {
    does: 'adopts no Namespace without our labels',
    given: { ...nothing, namespace: namespace({ labels: {} }) },
    actions: [],
    reason: 'NotTenant',
  },
  {
    does: 'adopts no Namespace whose labels belong to another name',
    given: { ...nothing, namespace: namespace({ name: 'kube-system' }) },
    actions: [],
    reason: 'NotTenant',
  },
  {
    does: 'adopts no Namespace whose labels are not slugs',
    given: {
      ...nothing,
      namespace: namespace({ name: 'a--b--c', labels: { 'mooring.dev/organization': 'a--b', 'mooring.dev/namespace': 'c' } }),
    },
    actions: [],
    reason: 'NotTenant',
  },
])('$does', ({ given, actions, reason }) => {
  const plan = planNamespace(given)
  expect(plan.actions.map((action) => (action.do === 'bind' ? `bind ${action.binding.metadata.name}` : action.do))).toEqual(
    actions,
  )
  expect(plan.decision?.reason ?? plan.reason).toBe(reason)
})

test('in a cluster the two components are bound in each tenant namespace as well', () => {
  const bindings = bindingsOf(NAME, { serviceAccounts: true })
  expect(bindings.map(({ metadata: { name }, roleRef, subjects = [] }) => [name, roleRef.name, subjects[0]?.kind])).toEqual([
    ['mooring-viewer', 'mooring-viewer', 'Group'],
    ['mooring-editor', 'mooring-editor', 'Group'],
    ['mooring-admin', 'mooring-admin', 'Group'],
    ['mooring-operator', 'mooring-tenant-operator', 'ServiceAccount'],
    ['mooring-apiserver', 'mooring-tenant-apiserver', 'ServiceAccount'],
  ])
})
