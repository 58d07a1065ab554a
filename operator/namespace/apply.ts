import { Namespace, RoleBinding } from '../../crds/core.ts'
import type { Draft, Kind } from '../../crds/kind.ts'
import { FINALIZER } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { ignoringGone, isStoreError, keyOf, type Preconditions, type Store } from '../../store/port.ts'
import { type Action, missingSubjects, type Observed } from './plan.ts'
import { adopting, missingMarks, newNamespace, slugsOf } from './resources.ts'

type Bind = Extract<Action, { do: 'bind' }>

/** Carries out one action. Preconditions name the observed objects: a successor of the same name is left unchanged. */
export async function perform(store: Store, { tenant, namespace }: Observed, action: Action): Promise<Namespace | undefined> {
  if (action.do === 'bind') await bind(store, action)
  else if (action.do === 'adopt') await adopt(store, namespace)
  else if (action.do === 'delete-namespace') await remove(store, Namespace, namespace)
  else if (action.do === 'follow') await remove(store, TenantNamespace, tenant)
  else if (tenant) return settle(store, { tenant, namespace }, action.do)
  return undefined
}

type OfTenant = Exclude<Action['do'], 'bind' | 'adopt' | 'delete-namespace' | 'follow'>

async function settle(
  store: Store,
  { tenant, namespace }: { readonly tenant: TenantNamespace; readonly namespace: Namespace | undefined },
  what: OfTenant,
): Promise<Namespace | undefined> {
  const { name } = tenant.metadata
  switch (what) {
    case 'add-finalizer':
      await setFinalizers(store, tenant, [...(tenant.metadata.finalizers ?? []), FINALIZER])
      return undefined
    case 'release':
      await setFinalizers(store, tenant, tenant.metadata.finalizers?.filter((each) => each !== FINALIZER) ?? [])
      return undefined
    case 'make-namespace':
      return store.create(Namespace, newNamespace(tenant))
    case 'mark-namespace':
      return namespace && store.mergePatch(Namespace, { name }, { metadata: missingMarks(tenant, namespace) }, exactly(namespace))
    case 'make-organization': {
      const { organization } = tenant.spec
      await once(store, Organization, { metadata: { name: organization }, spec: { name: organization } })
      return undefined
    }
  }
}

async function setFinalizers(store: Store, tenant: TenantNamespace, finalizers: readonly string[]): Promise<void> {
  const { uid, resourceVersion } = tenant.metadata
  await ignoringGone(store.mergePatch(TenantNamespace, keyOf(tenant), { metadata: { finalizers } }, { uid, resourceVersion }))
}

async function adopt(store: Store, namespace: Namespace | undefined): Promise<void> {
  const slugs = namespace && slugsOf(namespace)
  if (slugs) await once(store, TenantNamespace, adopting(namespace, slugs))
}

async function bind(store: Store, { binding, found }: Bind): Promise<void> {
  const { subjects = [], roleRef } = binding
  if (found?.roleRef.name === roleRef.name && found.roleRef.kind === roleRef.kind) {
    const more = [...found.subjects, ...missingSubjects(found, subjects)]
    await store.mergePatch(RoleBinding, keyOf(found), { subjects: more }, exactly(found))
    return
  }
  // The roleRef of a RoleBinding is immutable.
  await remove(store, RoleBinding, found)
  await once(store, RoleBinding, binding)
}

const exactly = ({ metadata: { uid, resourceVersion } }: Namespace | RoleBinding): Preconditions => ({ uid, resourceVersion })

async function remove(store: Store, kind: Kind, object: Namespace | TenantNamespace | RoleBinding | undefined): Promise<void> {
  if (!object) return
  await ignoringGone(store.delete(kind, keyOf(object), { uid: object.metadata.uid }))
}

async function once<K extends Kind>(store: Store, kind: K, draft: Draft<K>): Promise<void> {
  try {
    await store.create(kind, draft)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
  }
}
