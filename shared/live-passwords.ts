import type { ObjectMeta, OwnerReference } from '../crds/kind.ts'
import { GROUP } from '../crds/names.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../crds/tunnel-password.ts'

// Rules about which passwords of a tunnel are valid. Edge, operator and API server all use them, so they agree without communication. All pure.

/** Maximum number of live passwords of a tunnel (docs/api.md, "Tunnel passwords"). */
export const LIVE_PASSWORDS_MAX = 10

/** Returns the key of the tunnel that a password names. */
export const tunnelNamedBy = ({ metadata, spec }: TunnelPassword) => ({
  namespace: metadata.namespace,
  name: spec.tunnelRef.name,
})

/**
 * Whether a password belongs to this tunnel: the tunnel owns it, or no tunnel owns it yet and it names the tunnel. Password and tunnel may
 * be applied in either order. A later tunnel of the same name is a different tunnel: by then the password has an owner and is deleted with it.
 */
export function isPasswordOf({ metadata, spec }: TunnelPassword, { metadata: tunnel }: Pick<Tunnel, 'metadata'>): boolean {
  if (metadata.namespace !== tunnel.namespace || spec.tunnelRef.name !== tunnel.name) return false
  const owners = tunnelOwnersOf(metadata)
  return owners.length === 0 || owners.some(({ uid }) => uid === tunnel.uid)
}

/** Returns the owner references of an object that name tunnels. */
export function tunnelOwnersOf({ ownerReferences = [] }: Pick<ObjectMeta, 'ownerReferences'>): readonly OwnerReference[] {
  return ownerReferences.filter(({ apiVersion, kind }) => apiVersion.startsWith(`${GROUP}/`) && kind === Tunnel.kind)
}

/** Returns the passwords of a tunnel, expired ones included, ordered by creationTimestamp, then name; without those being deleted. */
export function passwordsOf(tunnel: Pick<Tunnel, 'metadata'>, passwords: readonly TunnelPassword[]): readonly TunnelPassword[] {
  return passwords
    .filter((password) => password.metadata.deletionTimestamp === undefined && isPasswordOf(password, tunnel))
    .sort(inOrder)
}

/**
 * Returns passwords of `named` that precede a password of the tunnel and have not expired at `now`, in no order: at most ten. Ten mean that
 * the password is not live, fewer that it is. The list is not sorted, because the function is called for each of possibly thousands of passwords.
 */
export function passwordsBefore(password: TunnelPassword, { tunnel, named, now }: PasswordsOfTunnel): readonly TunnelPassword[] {
  const before: TunnelPassword[] = []
  for (const other of named) {
    if (before.length >= LIVE_PASSWORDS_MAX) break
    const isOther = other.metadata.deletionTimestamp === undefined && inOrder(other, password) < 0
    if (isOther && isPasswordOf(other, tunnel) && endOfPassword(other) > now) before.push(other)
  }
  return before
}

/** Input of {@link passwordsBefore}. */
export interface PasswordsOfTunnel {
  readonly tunnel: Pick<Tunnel, 'metadata'>
  /** All passwords that name the tunnel. */
  readonly named: readonly TunnelPassword[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

const inOrder = ({ metadata: a }: TunnelPassword, { metadata: b }: TunnelPassword): number =>
  order(a.creationTimestamp, b.creationTimestamp) || order(a.name, b.name)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Returns the passwords that are live at `now`: the first ten that have not expired, of all passwords of one tunnel in the order of
 * {@link passwordsOf}. `endOf` and `now` are in milliseconds since the epoch.
 */
export function livePasswords<P>(ordered: readonly P[], endOf: (password: P) => number, now: number): readonly P[] {
  return ordered.filter((password) => endOf(password) > now).slice(0, LIVE_PASSWORDS_MAX)
}
