import type { ObjectMeta, OwnerReference } from '../crds/kind.ts'
import { GROUP } from '../crds/names.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../crds/tunnel-password.ts'

// Rules about which passwords of a tunnel or a database are valid. Edge, operator and API server all use them, so they agree without
// communication. All pure.

/** Maximum number of live passwords of a tunnel or a database (docs/api.md, "Tunnel passwords"). */
export const LIVE_PASSWORDS_MAX = 10

/** Kinds that SSH clients log in to, and so have passwords. */
export type OwnerKind = 'Tunnel' | 'DedicatedDatabase'

/** Tunnel or database that has passwords. */
export interface PasswordOwner {
  readonly kind: string
  readonly metadata: Pick<ObjectMeta, 'namespace' | 'name' | 'uid'>
}

/** Kind and key of the tunnel or database that a password names. */
export interface NamedOwner {
  readonly kind: OwnerKind
  readonly namespace: string | undefined
  readonly name: string
}

/** Returns the tunnel or database that a password names. */
export function ownerNamedBy({ metadata, spec }: Pick<TunnelPassword, 'metadata' | 'spec'>): NamedOwner {
  const { tunnelRef, databaseRef } = spec
  const { namespace } = metadata
  return tunnelRef
    ? { kind: 'Tunnel', namespace, name: tunnelRef.name }
    : { kind: 'DedicatedDatabase', namespace, name: databaseRef?.name ?? '' }
}

/** Returns the text under which indexes of passwords know a tunnel or database. */
export const ownerText = ({ kind, namespace = '', name }: Omit<NamedOwner, 'kind'> & { readonly kind: string }): string =>
  `${kind} ${namespace}/${name}`

/**
 * Whether a password belongs to this tunnel or database: the object owns it, or no object of the kind owns it yet and it names the object.
 * Password and object may be applied in either order. A later object of the same name is a different one: by then the password has an owner
 * and is deleted with it.
 */
export function isPasswordOf(password: TunnelPassword, { kind, metadata: owner }: PasswordOwner): boolean {
  const named = ownerNamedBy(password)
  if (named.kind !== kind || named.namespace !== owner.namespace || named.name !== owner.name) return false
  const owners = ownersOfKind(password.metadata, kind)
  return owners.length === 0 || owners.some(({ uid }) => uid === owner.uid)
}

/** Returns the owner references of an object that name objects of one of Mooring's kinds. */
export function ownersOfKind(
  { ownerReferences = [] }: Pick<ObjectMeta, 'ownerReferences'>,
  ofKind: string,
): readonly OwnerReference[] {
  return ownerReferences.filter(({ apiVersion, kind }) => apiVersion.startsWith(`${GROUP}/`) && kind === ofKind)
}

/** Returns the owner references of an object that name tunnels. */
export const tunnelOwnersOf = (metadata: Pick<ObjectMeta, 'ownerReferences'>): readonly OwnerReference[] =>
  ownersOfKind(metadata, Tunnel.kind)

/** Returns the passwords of a tunnel or database, expired ones included, ordered by creationTimestamp, then name; without those being deleted. */
export function passwordsOf(owner: PasswordOwner, passwords: readonly TunnelPassword[]): readonly TunnelPassword[] {
  return passwords
    .filter((password) => password.metadata.deletionTimestamp === undefined && isPasswordOf(password, owner))
    .sort(inOrder)
}

/**
 * Returns passwords of `named` that precede a password of the same owner and have not expired at `now`, in no order: at most ten. Ten mean that
 * the password is not live, fewer that it is. The list is not sorted, because the function is called for each of possibly thousands of passwords.
 */
export function passwordsBefore(password: TunnelPassword, { owner, named, now }: PasswordsOfOwner): readonly TunnelPassword[] {
  const before: TunnelPassword[] = []
  for (const other of named) {
    if (before.length >= LIVE_PASSWORDS_MAX) break
    const isOther = other.metadata.deletionTimestamp === undefined && inOrder(other, password) < 0
    if (isOther && isPasswordOf(other, owner) && endOfPassword(other) > now) before.push(other)
  }
  return before
}

/** Input of {@link passwordsBefore}. */
export interface PasswordsOfOwner {
  readonly owner: PasswordOwner
  /** All passwords that name the owner. */
  readonly named: readonly TunnelPassword[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

const inOrder = ({ metadata: a }: TunnelPassword, { metadata: b }: TunnelPassword): number =>
  order(a.creationTimestamp, b.creationTimestamp) || order(a.name, b.name)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Returns the passwords that are live at `now`: the first ten that have not expired, of all passwords of one owner in the order of
 * {@link passwordsOf}. `endOf` and `now` are in milliseconds since the epoch.
 */
export function livePasswords<P>(ordered: readonly P[], endOf: (password: P) => number, now: number): readonly P[] {
  return ordered.filter((password) => endOf(password) > now).slice(0, LIVE_PASSWORDS_MAX)
}
