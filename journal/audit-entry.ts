import { isDeepStrictEqual } from 'node:util'
import { createHmac } from 'node:crypto'
import { type Fields, isFields } from '../crds/formats/fields.ts'
import { originOf } from '../crds/formats/webhook-url.ts'
import { clusterRoleOf, isReserved, ROLES } from '../crds/names.ts'
import type { AuditedResource, AuditRecord } from './port.ts'

/**
 * Kinds that the audit log has entries of. `Member` stands for a RoleBinding of a member; the other kinds are custom resources.
 */
export const AUDITED_KINDS = [
  'ApiToken',
  'DedicatedDatabase',
  'Member',
  'Organization',
  'SharedInstance',
  'TenantNamespace',
  'Tunnel',
  'TunnelPassword',
  'TunnelWebhook',
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
  DedicatedDatabase: { motor: 'engine' },
  SharedInstance: { enabled: 'isEnabled', templateRef: 'template' },
  Tunnel: { displayName: 'name' },
  TunnelPassword: { tunnelRef: 'tunnel', databaseRef: 'database' },
  TunnelWebhook: { tunnelRef: 'tunnel' },
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
  const ownerOf = (ref: string, ofKind: string) =>
    spec[ref] !== undefined && names[ref] !== undefined && metadata.ownerReferences?.find(({ kind }) => kind === ofKind)?.uid
  const tunnel = ownerOf('tunnelRef', 'Tunnel')
  const database = ownerOf('databaseRef', 'DedicatedDatabase')
  return {
    ...(kind === 'Organization' && { slug: metadata.name }),
    ...(kind === 'DedicatedDatabase' && { name: metadata.name }),
    ...Object.fromEntries(fields),
    // The API refers to a tunnel and a database by its id; `tunnelRef` and `databaseRef` have the name of its object.
    ...(tunnel && { tunnel }),
    ...(database && { database }),
  }
}

const referenceOf = (field: string, value: unknown): unknown => (field.endsWith('Ref') && isFields(value) ? value.name : value)

/** One changed field. `from` is null for a field that was added, `to` is null for a field that was removed. */
export type AuditChange = AuditRecord['changes'][number]

/** Fields that hold credentials. The audit log records neither their values nor their hashes. */
const SECRET = new Set(['password', 'secret', 'sha256', 'token', 'tokenSalt'])

/**
 * Returns the fields that a write changed. `before` is undefined for a creation, `after` for a deletion. Lists are compared
 * whole, as a PATCH replaces them. Header values may be secrets, and so may the path of a webhook's URL: a digest replaces each. Pure.
 */
export function auditChanges(
  before: Audited | undefined,
  after: Audited | undefined,
  digest: ValueDigest,
): readonly AuditChange[] {
  const owner = (after ?? before)?.resource.id ?? ''
  const digested = (value: string) => digest(owner, value)
  const shown = (audited: Audited | undefined): Fields => {
    const fields = withoutSecrets(audited?.fields ?? {}) as Fields
    return audited?.resource.kind === 'TunnelWebhook' ? withoutUrl(fields, digested) : withoutHeaderValues(fields, digested)
  }
  const [from, to] = [shown(before), shown(after)]
  return keysOf(from, to).flatMap((key) => changesAt(key, from[key], to[key]))
}

function changesAt(path: string, from: unknown, to: unknown): AuditChange[] {
  if (isDeepStrictEqual(from, to)) return []
  if (!isFields(from) || !isFields(to)) return [{ path, from: from ?? null, to: to ?? null }]
  return keysOf(from, to).flatMap((key) => changesAt(`${path}.${key}`, from[key], to[key]))
}

const keysOf = (from: Fields, to: Fields): readonly string[] => [...new Set([...Object.keys(from), ...Object.keys(to)])]

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isFields(value)) return value
  const kept = Object.entries(value).filter(([key]) => !SECRET.has(key))
  return Object.fromEntries(kept.map(([key, field]) => [key, withoutSecrets(field)]))
}

/** Replaces header values by digests. An empty value, which removes a header, is not secret and stays. */
function withoutHeaderValues(fields: Fields, digest: (value: string) => string): Fields {
  const { config } = fields
  if (!isFields(config) || !Array.isArray(config.liveHeaderModifications)) return fields
  const items: readonly unknown[] = config.liveHeaderModifications
  const liveHeaderModifications = items.map((item) => {
    if (!isFields(item) || item.value === undefined || item.value === '') return item
    return { ...item, value: digest(typeof item.value === 'string' ? item.value : JSON.stringify(item.value)) }
  })
  return { ...fields, config: { ...config, liveHeaderModifications } }
}

/** Replaces the URL of a webhook by its scheme and host, and a digest that differs for another path. */
function withoutUrl(fields: Fields, digest: (value: string) => string): Fields {
  const { url } = fields
  return typeof url === 'string' ? { ...fields, url: `${originOf(url)} (${digest(url)})` } : fields
}

// Secrets of the audit log. Both derive from the token secret, which only the operator, the API server and administrators of the cluster have.

/**
 * Digest that the audit log stores in place of a value that may be a secret. Equal values of one `owner` have equal digests; a digest
 * reveals nothing else.
 */
export type ValueDigest = (owner: string, value: string) => string

/**
 * Makes the digest function. Its key is secret, so a reader of the log cannot test guesses against a digest. `owner` is the uid of the
 * resource, so a tenant cannot test guesses with values of its own resources.
 */
export function createValueDigest(tokenSecret: Uint8Array): ValueDigest {
  const key = createHmac('sha256', tokenSecret).update('audit digest').digest()
  return (owner, value) => {
    const hmac = createHmac('sha256', key)
      .update(JSON.stringify([owner, value]))
      .digest('hex')
    return `hmac-sha256:${hmac.slice(0, 32)}`
  }
}

/**
 * Returns the path of the audit webhook, to which the Kubernetes API server reports writes that did not use the REST API. Kubernetes sends
 * no credentials to a webhook, and each call adds entries to the audit log: so the path itself is secret.
 */
export function auditPath(tokenSecret: Uint8Array): string {
  return `/audit/${createHmac('sha256', tokenSecret).update('audit webhook').digest('hex').slice(0, 40)}`
}
