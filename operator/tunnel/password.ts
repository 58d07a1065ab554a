import {
  isPasswordOf,
  LIVE_PASSWORDS_MAX,
  type NamedOwner,
  ownerNamedBy,
  ownersOfKind,
  ownerText,
  type PasswordOwner,
  passwordsBefore,
} from '../../shared/live-passwords.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { endOfPassword, PasswordReason, TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'
import { ignoringGone, keyOf, type Key, type Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface PasswordReconcilerDeps {
  readonly store: Store
  readonly tunnels: Cache<typeof Tunnel>
  readonly databases: Cache<typeof DedicatedDatabase>
  /** Passwords, with the indexes of indexes.ts. */
  readonly passwords: Cache<typeof TunnelPassword>
  readonly report: Report
  readonly now: () => Date
}

/**
 * Creates the reconciler of temporary passwords: it reports whether a password is active, sets its tunnel or database as its owner, and
 * deletes it when it has expired. Edges decide by the same functions and do not wait for the status.
 */
export function createPasswordReconciler({ store, tunnels, databases, passwords, report, now }: PasswordReconcilerDeps) {
  return async function reconcilePassword(key: Key): Promise<Outcome> {
    const password = passwords.get(key)
    if (!password || password.metadata.deletionTimestamp !== undefined) return { result: 'settled', reason: 'Gone' }
    const at = now().getTime()
    const end = endOfPassword(password)
    if (end <= at) {
      await remove(password)
      return { result: 'settled', reason: PasswordReason.Expired }
    }
    const ownerName = ownerNamedBy(password)
    const owner = ownerOf(ownerName)
    const named = passwords.byIndex('owner', ownerText(ownerName))
    const { decision, until } = passwordDecision({ password, owner, named, now: at })
    const owned = await adopt(password, owner)
    if (!owned) return { result: 'settled', reason: 'Gone' }
    await report(TunnelPassword, owned, decision, { expiresAt: new Date(end).toISOString() })
    return { result: 'settled', reason: decision.reason, requeueAfterMs: until - at }
  }

  function ownerOf(name: NamedOwner): Tunnel | DedicatedDatabase | undefined {
    return name.kind === 'Tunnel' ? tunnels.get(name) : databases.get(name)
  }

  async function remove(password: TunnelPassword): Promise<void> {
    await ignoringGone(store.delete(TunnelPassword, keyOf(password), { uid: password.metadata.uid }))
  }

  /**
   * Sets the owner of a password made with kubectl, so that it is deleted with its tunnel or database.
   * @returns the password; undefined when it is gone
   */
  async function adopt(
    password: TunnelPassword,
    owner: Tunnel | DedicatedDatabase | undefined,
  ): Promise<TunnelPassword | undefined> {
    const { uid, resourceVersion, ownerReferences = [] } = password.metadata
    if (!owner || !isPasswordOf(password, owner) || ownersOfKind(password.metadata, owner.kind).length > 0) return password
    const kind = owner.kind === Tunnel.kind ? Tunnel : DedicatedDatabase
    const patch = { metadata: { ownerReferences: [...ownerReferences, ownerReferenceTo(kind, owner)] } }
    return ignoringGone(store.mergePatch(TunnelPassword, keyOf(password), patch, { uid, resourceVersion }))
  }
}

/** Observed state that a password's condition depends on. */
export interface ObservedPassword {
  /** Password that has not expired. */
  readonly password: TunnelPassword
  /** Tunnel or database of the name in its spec. */
  readonly owner: PasswordOwner | undefined
  /** All passwords for this name, itself included. */
  readonly named: readonly TunnelPassword[]
  /** Milliseconds since the epoch, like `until`. */
  readonly now: number
}

/** Condition of a password, and the time until which it holds without any change. Pure. */
export function passwordDecision(observed: ObservedPassword): { readonly decision: Decision; readonly until: number } {
  const { password, owner, named, now } = observed
  const { kind, name } = ownerNamedBy(password)
  const until = endOfPassword(password)
  const { what, missing } = WORDS[kind]
  if (!owner) return { decision: notReady(missing, `there is no ${what} ${name}`), until }
  if (!isPasswordOf(password, owner)) return { decision: notReady(missing, `it is for an earlier ${what} named ${name}`), until }
  if (isWithoutTunnel(owner)) return { decision: notReady(missing, `the ${what} ${name} has no sshTunnel`), until }
  const before = passwordsBefore(password, { owner, named, now })
  if (before.length < LIVE_PASSWORDS_MAX) {
    return { decision: ready(PasswordReason.Active, `it opens ${name} until ${new Date(until).toISOString()}`), until }
  }
  const message = `${name} has ${before.length} older active passwords, which is the maximum: this one is rejected until one of them expires`
  return { decision: notReady(PasswordReason.TooManyPasswords, message), until: Math.min(until, ...before.map(endOfPassword)) }
}

const WORDS = {
  Tunnel: { what: 'tunnel', missing: PasswordReason.TunnelMissing },
  DedicatedDatabase: { what: 'database', missing: PasswordReason.DatabaseMissing },
} as const

/** Whether an owner is a database without the SSH tunnel. */
const isWithoutTunnel = (owner: PasswordOwner): boolean =>
  owner.kind === DedicatedDatabase.kind && (owner as DedicatedDatabase).spec.sshTunnel === undefined
