import { z } from 'zod'
import { GROUP, VERSION } from './names.ts'

/** Kubernetes object metadata, as far as Mooring uses it. `resourceVersion` is opaque; times are RFC 3339 UTC, whole seconds. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  /** Moves when `spec` changes (kinds with a status subresource), never on a status write. */
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
 * A rule over the whole spec: `cel` for the API server, `holds` the same rule for the EmbeddedStore. One whose field is in `metadata` is over
 * the whole object: its CEL sees `self.metadata.name` and `self.spec`.
 */
export interface Rule {
  readonly cel: string
  readonly message: string
  /** Dotted path the message is about. */
  readonly field: string
  readonly holds: (spec: never, metadata: Pick<ObjectMeta, 'name'>) => boolean
}

/** `type` and `jsonPath` as in a CRD's additionalPrinterColumns. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly priority?: number
}

/**
 * One resource kind. `body` is the zod schema of everything beside apiVersion, kind and metadata: `{spec, status?}` for
 * Mooring's own kinds, and for the few Kubernetes kinds (Namespace, Secret, RoleBinding …) whatever they hold.
 */
export interface Kind<Body extends z.ZodObject = z.ZodObject> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly namespaced: boolean
  /** True for Mooring's own kinds: a CRD is generated, unknown fields are refused, status is a subresource. */
  readonly custom: boolean
  readonly description: string
  readonly body: Body
  /** Dotted paths below the object that may not change after creation, e.g. `spec.region`. */
  readonly immutable: readonly string[]
  readonly rules: readonly Rule[]
  readonly columns: readonly PrinterColumn[]
}

/** An object of a kind as a store returns it: complete, defaulted and deeply frozen. */
export type Resource<K extends Kind> =
  K extends Kind<infer B>
    ? { readonly apiVersion: string; readonly kind: string; readonly metadata: ObjectMeta } & DeepReadonly<z.output<B>>
    : never

/** What a caller hands to `create`: the store fills in the rest of the metadata and the defaults; status is ignored. */
export type Draft<K extends Kind> =
  K extends Kind<infer B> ? { readonly metadata: DraftMeta } & DeepReadonly<Omit<z.input<B>, 'status'>> : never

export type DraftMeta = Pick<ObjectMeta, 'name' | 'namespace' | 'labels' | 'annotations' | 'finalizers' | 'ownerReferences'>

/** The status of a kind, empty at first. */
export type StatusOf<K extends Kind> =
  K extends Kind<infer B> ? (z.output<B> extends { status?: infer S } ? DeepReadonly<NonNullable<S>> : never) : never

export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [P in keyof T]: DeepReadonly<T[P]> }
    : T

/** What a time in a spec must be: words for {@link Rule} and for zod alike. */
export const UTC_RULE = 'must be a UTC time such as 2030-01-31T12:00:00Z'

/** One entry of `status.conditions` (Kubernetes API conventions). */
export const Condition = z.object({
  type: z.string().max(64).describe('What it is about; `Ready` sums the others up.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z.string().max(64).describe('Why, in one documented word.'),
  message: z.string().max(1024).describe('Why, for people.'),
  lastTransitionTime: z.string().max(32).describe('When `status` last became what it is.'),
  observedGeneration: z.int().optional().describe('Generation of the spec that it speaks of.'),
})
export type Condition = DeepReadonly<z.output<typeof Condition>>

/** Fields that the status of every kind has. */
export const commonStatus = {
  observedGeneration: z.int().optional().describe('Generation of the spec that this status speaks of.'),
  conditions: z.array(Condition).max(16).optional().describe('Conditions; Ready sums the others up.'),
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

/** `mooring.dev/v1alpha1`, or `v1` for the core group. */
export function apiVersionOf(kind: Pick<Kind, 'group' | 'version'>): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
}

/** How what goes with an object of `kind` names it as its owner. */
export function ownerReferenceTo(
  kind: Kind,
  { metadata: { name, uid } }: { readonly metadata: Pick<ObjectMeta, 'name' | 'uid'> },
) {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, name, uid }
}
