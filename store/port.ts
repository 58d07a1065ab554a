import type { Draft, Kind, Resource, StatusOf } from '../crds/kind.ts'

/** Names one object. `namespace` is absent for cluster-scoped kinds. */
export interface Key {
  readonly namespace?: string | undefined
  readonly name: string
}

export interface ListOptions {
  readonly namespace?: string | undefined
  /** Equality only: every label must have exactly this value. */
  readonly labels?: Readonly<Record<string, string>> | undefined
}

export interface ListResult<K extends Kind> {
  /** Ordered by namespace, then name. */
  readonly items: readonly Resource<K>[]
  /** The collection's: a watch from here misses nothing. */
  readonly resourceVersion: string
}

export interface WatchOptions extends ListOptions {
  /** Events after this revision are replayed, then followed, in order. */
  readonly resourceVersion: string
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal
}

export type WatchEvent<K extends Kind> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: Resource<K> }
  /** Progress alone: nothing older than this revision is still to come. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }

/** The write happens only when the object still has these. Absent = no condition. */
export interface Preconditions {
  readonly resourceVersion?: string | undefined
  readonly uid?: string | undefined
}

/** An RFC 7396 merge patch of labels, annotations, finalizers, owner references and the body, never of status. */
export type Patch = Readonly<Record<string, unknown>>

/**
 * Where resources live: a Kubernetes API server, or memory over SQLite in embedded mode. Both keep Kubernetes' semantics
 * (conformance.ts says which) and throw {@link StoreError} alone. Returned objects are deeply frozen and may be shared.
 *
 * - One global revision; `resourceVersion` is it. A write that changes nothing bumps nothing and emits nothing.
 * - `generation` moves when `spec` changes. `create`, `replace` and `mergePatch` ignore `status`; `patchStatus` touches it alone.
 * - `delete` of an object with finalizers only sets `deletionTimestamp`; it goes when the last finalizer does.
 *   Dependants (ownerReferences) follow their last owner; a deleted Namespace takes what is in it along.
 * - A write is acknowledged once it is durable.
 */
export interface Store {
  /** @returns undefined when there is none. */
  get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | undefined>
  list<K extends Kind>(kind: K, options?: ListOptions): Promise<ListResult<K>>
  /** @throws StoreError `gone` (from the iteration) when the revision was compacted. */
  watch<K extends Kind>(kind: K, options: WatchOptions): AsyncIterable<WatchEvent<K>>
  /** @throws StoreError `already_exists`, `invalid`, `not_found` (its namespace), `forbidden` (namespace is being deleted) */
  create<K extends Kind>(kind: K, draft: Draft<K>): Promise<Resource<K>>
  /** Replaces all but status. `metadata.resourceVersion` and uid of `object` are preconditions. @throws StoreError `conflict`, `not_found`, `invalid` */
  replace<K extends Kind>(kind: K, object: Resource<K>): Promise<Resource<K>>
  mergePatch<K extends Kind>(kind: K, key: Key, patch: Patch, preconditions?: Preconditions): Promise<Resource<K>>
  /** Merge patch of the status alone; `null` removes a field. */
  patchStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: { readonly [P in keyof StatusOf<K>]?: StatusOf<K>[P] | null | undefined },
    preconditions?: Preconditions,
  ): Promise<Resource<K>>
  /** Resolves when the wish is recorded, or the object gone. @throws StoreError `not_found`, `conflict` */
  delete(kind: Kind, key: Key, preconditions?: Preconditions): Promise<void>
}
