import { type Fields, isFields } from '../crds/formats/fields.ts'
import { clusterRoleOf, isReserved, ROLES } from '../crds/names.ts'
import type { AuditedResource } from './port.ts'

/**
 * Kinds that the audit log has entries of. `Member` stands for a RoleBinding of a member; the other kinds are custom resources.
 */
export const AUDITED_KINDS = [
  'ApiToken',
  'Member',
  'Organization',
  'SharedInstance',
  'TenantNamespace',
  'Tunnel',
  'TunnelPassword',
] as const

/**
 * Returns the audit scope of an organization. It takes the field of a namespace in an entry, and no namespace can have this name.
 */
export const organizationScope = (slug: string): string => `organization/${slug}`

/** A custom resource or a RoleBinding, from the API, an admission review or a cache. */
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

/**
 * An object as the audit log records it: the resource under its display name, the spec under the field names of the REST API.
 */
export interface Audited {
  readonly resource: AuditedResource
  readonly fields: Fields
}

type FieldNames = Readonly<Record<string, string>>

/** Fields of a spec that have another name in the REST API. A reference `{name}` becomes the name itself. */
const API_NAMES: Readonly<Record<string, FieldNames>> = {
  SharedInstance: { enabled: 'isEnabled', templateRef: 'template' },
  Tunnel: { displayName: 'name' },
  TunnelPassword: { tunnelRef: 'tunnel' },
  ApiToken: { displayName: 'name' },
  TenantNamespace: { namespace: 'slug', displayName: 'name' },
}

/** Describes an object for the audit log. Returns undefined for a RoleBinding without a member. */
export function auditedObject(object: AuditedObject): Audited | undefined {
  if (object.kind === 'RoleBinding') return memberOf(object)
  return { resource: resourceOf(object), fields: fieldsOf(object) }
}

/**
 * Describes a member. Its id is its subject, as in the API: a change of the role replaces the RoleBinding, and with it the uid.
 */
function memberOf({ roleRef, subjects = [] }: AuditedObject): Audited | undefined {
  const role = roleRef?.kind === 'ClusterRole' ? ROLES.find((each) => clusterRoleOf(each) === roleRef.name) : undefined
  const names = subjects.map(({ name }) => name).filter((name) => !isReserved(name))
  if (!role || names.length === 0) return undefined
  const subject = names.join(', ')
  return { resource: { kind: 'Member', id: subject, name: subject }, fields: { subject, role } }
}

/**
 * Returns the audit scopes of an object. A write of a TenantNamespace belongs to its organization too, whose entries outlive the
 * namespace.
 */
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
    // The API refers to a tunnel by its id; `tunnelRef` has the name of its object.
    ...(tunnel && { tunnel }),
  }
}

const referenceOf = (field: string, value: unknown): unknown => (field.endsWith('Ref') && isFields(value) ? value.name : value)
