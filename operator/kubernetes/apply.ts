import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Kind, Resource } from '../../crds/kind.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { objectPath, resourceOf } from '../../store/kubernetes/resource.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'
import type { Key } from '../../store/port.ts'
import type { Live } from './live.ts'

/** Owner of the operator's writes in `managedFields`. */
const FIELD_MANAGER = 'mooring-operator'

/** Desired object: the fields that its builder sets. */
export interface Manifest {
  readonly metadata?: { readonly name?: string; readonly namespace?: string }
}

export interface Applied<K extends Kind> {
  readonly kind: K
  readonly live: Live<K>
}

/**
 * Applies desired objects by server-side apply. An object that is unchanged since the last apply costs no request; an object that another
 * writer changed is applied again.
 */
export interface Applier {
  /** Applies the manifest. @returns the resulting object @throws StoreError */
  apply<K extends Kind>(applied: Applied<K>, manifest: Manifest): Promise<Resource<K>>
  /** Forgets deleted objects. */
  prune(): void
  /** Number of remembered objects. */
  readonly size: number
}

/** Kinds whose spec has no other writer. Load balancers write to Services. */
const OURS_ALONE = new Set(['StatefulSet', 'Deployment', 'NetworkPolicy'])

/** Statuses of an apply that an admission policy rejects, also for a field that another writer added, such as `hostNetwork`. */
const FORBIDDEN = new Set([403, 422])

interface Done {
  /** Hash of the manifest, which may contain a key. */
  readonly desired: string
  /** Hash of the resulting object. */
  readonly left: string
  readonly isThere: () => boolean
}

const Answer = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string(), managedFields: z.unknown() }) })

export function createApplier(client: KubernetesClient): Applier {
  const done = new Map<string, Done>()

  async function send(kind: Kind, key: Key, manifest: Manifest): Promise<unknown> {
    const path = objectPath(kind, key)
    const query = { fieldManager: FIELD_MANAGER, force: 'true', fieldValidation: 'Strict' }
    const contentType = 'application/apply-patch+yaml'
    const request = { method: 'PATCH', path, query, contentType, body: manifest, idempotent: true } as const
    const applied = await client.request(request)
    const failure = applied.status >= 300 ? storeErrorOf(applied, { kind, ...key, request }) : undefined
    if (OURS_ALONE.has(kind.kind) && (!failure || FORBIDDEN.has(applied.status))) {
      // Apply restores our fields, and keeps fields that others added, such as one more container.
      const found = failure ? await client.request({ method: 'GET', path }) : applied
      const metadata = found.status < 300 ? Answer.parse(found.body).metadata : undefined
      if (metadata && foreignSpec(metadata.managedFields, FIELD_MANAGER)) return replace(kind, key, manifest, metadata)
    }
    if (failure) throw failure
    return applied.body
  }

  async function replace(
    kind: Kind,
    key: Key,
    manifest: Manifest,
    { resourceVersion }: { resourceVersion: string },
  ): Promise<unknown> {
    const query = { fieldManager: FIELD_MANAGER, fieldValidation: 'Strict' }
    const body = { ...manifest, metadata: { ...manifest.metadata, resourceVersion } }
    const request = { method: 'PUT', path: objectPath(kind, key), query, body } as const
    const replaced = await client.request(request)
    if (replaced.status >= 300) throw storeErrorOf(replaced, { kind, ...key, request })
    return replaced.body
  }

  return {
    async apply<K extends Kind>({ kind, live }: Applied<K>, manifest: Manifest): Promise<Resource<K>> {
      const { name = '', namespace } = manifest.metadata ?? {}
      const key = { name, namespace }
      const id = `${kind.kind} ${namespace ?? ''}/${name}`
      const [known, found] = [done.get(id), live.get(key)]
      const desired = hash(manifest)
      if (found && known?.desired === desired && known.left === hash(ownPart(found))) return found
      const object = resourceOf(kind, await send(kind, key, manifest))
      live.remember(object)
      done.set(id, { desired, left: hash(ownPart(object)), isThere: () => live.get(key) !== undefined })
      return object
    },
    prune() {
      for (const [id, { isThere }] of done) if (!isThere()) done.delete(id)
    },
    get size() {
      return done.size
    },
  }
}

/** Part of an object that only its writer should change: all but the status and the fields that the API server sets. */
function ownPart({ metadata: { uid, labels, ownerReferences }, ...body }: Resource<Kind>): unknown {
  return { ...body, status: undefined, metadata: { uid, labels, ownerReferences } }
}

const hash = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex')

const Fields = z.record(z.string(), z.unknown())
/** ManagedFieldsEntry of meta/v1. */
const Entries = z.array(
  z.object({ manager: z.string().default(''), subresource: z.string().default(''), fieldsV1: Fields.default({}) }),
)

/** Path that any writer may set on a StatefulSet: `kubectl rollout restart` sets an annotation of the pods. */
const ALLOWED = ['f:spec', 'f:template', 'f:metadata']

/**
 * Whether a manager other than `manager` owns a part of an object's spec.
 * @param managedFields of the metadata, as the API server sends them
 */
export function foreignSpec(managedFields: unknown, manager: string): boolean {
  const entries = Entries.safeParse(managedFields)
  if (!entries.success) return false
  return entries.data.some((entry) => entry.manager !== manager && entry.subresource === '' && ownsSpec(entry.fieldsV1))
}

function ownsSpec(fields: Readonly<Record<string, unknown>>): boolean {
  return leaves(fields['f:spec'], ['f:spec']).some((path) => !ALLOWED.every((part, index) => path[index] === part))
}

/** Paths of all fields without subfields. `.` stands for the field itself, which every owner of a subfield shares. */
function leaves(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
  const fields = Fields.safeParse(value)
  if (!fields.success) return []
  const below = Object.entries(fields.data).filter(([name]) => name !== '.')
  return below.length === 0 ? [path] : below.flatMap(([name, inner]) => leaves(inner, [...path, name]))
}
