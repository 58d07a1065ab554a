import { z } from 'zod'
import { GROUP, VERSION } from './names.ts'

/** Kubernetes object metadata; only the fields that Mooring uses. `resourceVersion` is opaque; times are RFC 3339 UTC, whole seconds. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  /** Increases when `spec` changes (kinds with a status subresource), never on a status write. */
  readonly generation: number
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/**
 * Rule over the whole spec: `cel` is evaluated by the API server, `holds` is the same rule for the EmbeddedStore. A rule whose field is in
 * `metadata` is over the whole object: its CEL sees `self.metadata.name` and `self.spec`.
 */
export interface Rule {
  readonly cel: string
  readonly message: string
  /** Dotted path of the field that the message is about. */
  readonly field: string
  readonly holds: (spec: never, metadata: Pick<ObjectMeta, 'name'>) => boolean
}

/** Column of `kubectl get`; `type` and `jsonPath` as in a CRD's additionalPrinterColumns. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly priority?: number
}

/**
 * Resource kind. `body` is the zod schema of all fields besides apiVersion, kind and metadata: `{spec, status?}` for
 * Mooring's own kinds, other fields for Kubernetes' kinds (Namespace, Secret, RoleBinding …).
 */
export interface Kind<Body extends z.ZodObject = z.ZodObject> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly namespaced: boolean
  /** True for Mooring's own kinds: a CRD is generated, unknown fields are rejected, status is a subresource. */
  readonly custom: boolean
  readonly description: string
  readonly body: Body
  /** Dotted paths of fields that must not change after creation, e.g. `spec.region`. */
  readonly immutable: readonly string[]
  readonly rules: readonly Rule[]
  readonly columns: readonly PrinterColumn[]
}

/** Object of a kind as a store returns it: complete, with defaults, deeply frozen. */
export type Resource<K extends Kind> =
  K extends Kind<infer B>
    ? { readonly apiVersion: string; readonly kind: string; readonly metadata: ObjectMeta } & DeepReadonly<z.output<B>>
    : never

/** Argument of `create`: the store adds the rest of the metadata and the defaults, and ignores `status`. */
export type Draft<K extends Kind> =
  K extends Kind<infer B> ? { readonly metadata: DraftMeta } & DeepReadonly<Omit<z.input<B>, 'status'>> : never

export type DraftMeta = Pick<ObjectMeta, 'name' | 'namespace' | 'labels' | 'annotations' | 'finalizers' | 'ownerReferences'>

/** Status of a kind; absent until the operator has written it. */
export type StatusOf<K extends Kind> =
  K extends Kind<infer B> ? (z.output<B> extends { status?: infer S } ? DeepReadonly<NonNullable<S>> : never) : never

export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [P in keyof T]: DeepReadonly<T[P]> }
    : T

/** Message for an invalid time in a spec. */
export const UTC_RULE = 'must be a UTC time such as 2030-01-31T12:00:00Z'

/** One entry of `status.conditions` (Kubernetes API conventions). */
export const Condition = z.object({
  type: z.string().max(64).describe('Type of the condition; `Ready` summarizes the others.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
  reason: z.string().max(64).describe('Documented reason, in one CamelCase word.'),
  message: z.string().max(1024).describe('Explanation for people.'),
  lastTransitionTime: z.string().max(32).describe('Time of the last change of `status`.'),
  observedGeneration: z.int().optional().describe('Generation of the spec that the condition describes.'),
})
export type Condition = DeepReadonly<z.output<typeof Condition>>

/** Status fields of every kind. */
export const commonStatus = {
  observedGeneration: z.int().optional().describe('Generation of the spec that this status describes.'),
  conditions: z.array(Condition).max(16).optional().describe('Conditions; `Ready` summarizes the others.'),
}

export const READY_COLUMNS: readonly PrinterColumn[] = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
]
export const AGE_COLUMN: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

interface CustomKind<S extends z.ZodObject, T extends z.ZodObject> {
  readonly kind: string
  readonly plural: string
  readonly shortNames: readonly string[]
  readonly namespaced: boolean
  readonly description: string
  readonly spec: S
  readonly status: T
  readonly immutable?: readonly string[]
  readonly rules?: readonly Rule[]
  readonly columns: readonly PrinterColumn[]
}

/** Declares one of Mooring's own kinds. */
export function defineKind<S extends z.ZodObject, T extends z.ZodObject>(
  def: CustomKind<S, T>,
): Kind<z.ZodObject<{ spec: S; status: z.ZodOptional<T> }>> {
  const { spec, status, immutable = [], rules = [], ...rest } = def
  const singular = def.kind.toLowerCase()
  return {
    group: GROUP,
    version: VERSION,
    custom: true,
    singular,
    immutable,
    rules,
    body: z.object({ spec, status: status.optional() }),
    ...rest,
  }
}

/** Returns the apiVersion of a kind: `mooring.dev/v1alpha1`, or `v1` for the core group. */
export function apiVersionOf(kind: Pick<Kind, 'group' | 'version'>): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
}

/** Returns the owner reference that dependants put into their metadata. */
export function ownerReferenceTo(
  kind: Kind,
  { metadata: { name, uid } }: { readonly metadata: Pick<ObjectMeta, 'name' | 'uid'> },
) {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, name, uid }
}
