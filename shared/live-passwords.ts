import type { ObjectMeta, OwnerReference } from '../crds/kind.ts'
import { GROUP } from '../crds/names.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../crds/tunnel-password.ts'

// Which passwords open a tunnel. Edge, operator and API server go by these alone, so that none waits for what another says. All pure.

/** Live ones of a tunnel at the most (surface, section 2). */
export const LIVE_PASSWORDS_MAX = 10

/** Key of the tunnel that a password names. */
export const tunnelNamedBy = ({ metadata, spec }: TunnelPassword) => ({
  namespace: metadata.namespace,
  name: spec.tunnelRef.name,
})

/**
 * Whether a password is one of this very tunnel: the one that owns it or, of a password that no tunnel owns yet, the one of its name, whichever
 * of the two was applied first. A later tunnel of the same name is another: a password has had its owner by then, and goes with it.
 */
export function isPasswordOf({ metadata, spec }: TunnelPassword, { metadata: tunnel }: Pick<Tunnel, 'metadata'>): boolean {
  if (metadata.namespace !== tunnel.namespace || spec.tunnelRef.name !== tunnel.name) return false
  const owners = tunnelOwnersOf(metadata)
  return owners.length === 0 || owners.some(({ uid }) => uid === tunnel.uid)
}

/** The tunnels that own an object. */
export function tunnelOwnersOf({ ownerReferences = [] }: Pick<ObjectMeta, 'ownerReferences'>): readonly OwnerReference[] {
  return ownerReferences.filter(({ apiVersion, kind }) => apiVersion.startsWith(`${GROUP}/`) && kind === Tunnel.kind)
}

/** Those of `passwords` that are this tunnel's, expired or not: by creationTimestamp, then by name. None that is being deleted. */
export function passwordsOf(tunnel: Pick<Tunnel, 'metadata'>, passwords: readonly TunnelPassword[]): readonly TunnelPassword[] {
  return passwords
    .filter((password) => password.metadata.deletionTimestamp === undefined && isPasswordOf(password, tunnel))
    .sort(inOrder)
}

/**
 * Some of `named` that keep a password of the tunnel from being accepted at `now`: those that were made before it and have not ended, in no order; ten of
 * them, or fewer when it is accepted. Nothing is sorted: of thousands that are too many, each is asked about.
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

/** What is asked of one of its passwords. */
export interface PasswordsOfTunnel {
  readonly tunnel: Pick<Tunnel, 'metadata'>
  /** All that name its name. */
  readonly named: readonly TunnelPassword[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

const inOrder = ({ metadata: a }: TunnelPassword, { metadata: b }: TunnelPassword): number =>
  order(a.creationTimestamp, b.creationTimestamp) || order(a.name, b.name)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Those that are accepted at `now`: the first ten that have not ended, of all passwords of one tunnel in the order of {@link passwordsOf}.
 * `endOf` and `now` in milliseconds since the epoch.
 */
export function livePasswords<P>(ordered: readonly P[], endOf: (password: P) => number, now: number): readonly P[] {
  return ordered.filter((password) => endOf(password) > now).slice(0, LIVE_PASSWORDS_MAX)
}
