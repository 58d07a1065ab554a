import { type Fields, isFields } from '../crds/formats/fields.ts'
import { clusterRoleOf, isReserved, ROLES } from '../crds/names.ts'
import type { AuditedResource } from './port.ts'

/** Kinds that the audit log has entries of. `Member` is a RoleBinding that stands for a member; the others are custom resources. */
export const AUDITED_KINDS = [
  'ApiToken',
  'Member',
  'Organization',
  'SharedInstance',
  'TenantNamespace',
  'Tunnel',
  'TunnelPassword',
] as const

/** Where entries of an organization itself are kept, in place of a namespace: not the name of any. */
export const organizationScope = (slug: string): string => `organization/${slug}`

/** A custom resource or a RoleBinding, as the API, an admission review or a cache has it. */
export interface AuditedObject {
  readonly kind: string
  readonly metadata: {
    readonly uid: string
    readonly name: string
    readonly namespace?: string | undefined
    readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[] | undefined
  }
  readonly spec?: Fields | undefined
  readonly status?: Fields | undefined
  readonly roleRef?: { readonly kind: string; readonly name: string } | undefined
  readonly subjects?: readonly { readonly name: string }[] | undefined
}

/** An object as the audit log speaks of it: named by what its owner calls it, its spec under the field names of the REST API. */
export interface Audited {
  readonly resource: AuditedResource
  readonly fields: Fields
}

type FieldNames = Readonly<Record<string, string>>

/** Fields of a spec that the REST API names differently; `{name}` of a reference becomes the name itself. */
const API_NAMES: Readonly<Record<string, FieldNames>> = {
  SharedInstance: { enabled: 'isEnabled', templateRef: 'template' },
  Tunnel: { displayName: 'name' },
  TunnelPassword: { tunnelRef: 'tunnel' },
  ApiToken: { displayName: 'name' },
  TenantNamespace: { namespace: 'slug', displayName: 'name' },
}

/** Describes an object for the audit log. Undefined for a RoleBinding without a member. */
export function auditedObject(object: AuditedObject): Audited | undefined {
  if (object.kind === 'RoleBinding') return memberOf(object)
  return { resource: resourceOf(object), fields: fieldsOf(object) }
}

/** A member by its subject, which is what the API calls it by: the RoleBinding is another one after each change of the role. */
function memberOf({ roleRef, subjects = [] }: AuditedObject): Audited | undefined {
  const role = roleRef?.kind === 'ClusterRole' ? ROLES.find((each) => clusterRoleOf(each) === roleRef.name) : undefined
  const names = subjects.map(({ name }) => name).filter((name) => !isReserved(name))
  if (!role || names.length === 0) return undefined
  const subject = names.join(', ')
  return { resource: { kind: 'Member', id: subject, name: subject }, fields: { subject, role } }
}

/** Namespaces of the entries of an object: one that is a tenant's namespace is an event of its organization, too, whose entries outlive it. */
export function auditScopes({ kind, metadata, spec = {} }: AuditedObject): readonly string[] {
  if (kind === 'Organization') return [organizationScope(metadata.name)]
  if (kind === 'TenantNamespace') return [metadata.name, organizationScope(String(spec.organization))]
  return metadata.namespace === undefined ? [] : [metadata.namespace]
}

function resourceOf({ kind, metadata, spec = {}, status = {} }: AuditedObject): AuditedResource {
  const about = { kind, id: metadata.uid, name: nameOf(kind, metadata.name, spec) }
  return kind === 'Tunnel' && typeof status.hostname === 'string' ? { ...about, hostname: status.hostname } : about
}

function nameOf(kind: string, name: string, { organization, namespace, displayName, identifier }: Fields): string {
  if (kind === 'TenantNamespace') return `${String(organization)}/${String(namespace)}`
  const own = displayName ?? identifier
  return typeof own === 'string' ? own : name
}

function fieldsOf({ kind, metadata, spec = {} }: AuditedObject): Fields {
  const names = API_NAMES[kind] ?? {}
  const fields = Object.entries(spec).map(([field, value]) => [names[field] ?? field, referenceOf(field, value)] as const)
  const tunnel = kind === 'TunnelPassword' && metadata.ownerReferences?.find((owner) => owner.kind === 'Tunnel')?.uid
  return {
    ...(kind === 'Organization' && { slug: metadata.name }),
    ...Object.fromEntries(fields),
    // The id is what the API calls it by; the name is that of its object.
    ...(tunnel && { tunnel }),
  }
}

const referenceOf = (field: string, value: unknown): unknown => (field.endsWith('Ref') && isFields(value) ? value.name : value)
