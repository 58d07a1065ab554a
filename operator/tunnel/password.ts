import { isPasswordOf, LIVE_PASSWORDS_MAX, passwordsBefore, tunnelNamedBy, tunnelOwnersOf } from '../../shared/live-passwords.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { endOfPassword, PasswordReason, TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'
import { isStoreError, keyOf, keyToString, type Key, type Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface PasswordReconcilerDeps {
  readonly store: Store
  readonly tunnels: Cache<typeof Tunnel>
  /** Passwords, with the indexes of indexes.ts. */
  readonly passwords: Cache<typeof TunnelPassword>
  readonly report: Report
  readonly now: () => Date
}

/**
 * Creates the reconciler of temporary passwords: it reports whether a password is active, sets its tunnel as its owner, and deletes it when
 * it has expired. Edges decide by the same functions and do not wait for the status.
 */
export function createPasswordReconciler({ store, tunnels, passwords, report, now }: PasswordReconcilerDeps) {
  return async function reconcilePassword(key: Key): Promise<Outcome> {
    const password = passwords.get(key)
    if (!password || password.metadata.deletionTimestamp !== undefined) return { result: 'settled', reason: 'Gone' }
    const at = now().getTime()
    const end = endOfPassword(password)
    if (end <= at) {
      await remove(password)
      return { result: 'settled', reason: PasswordReason.Expired }
    }
    const tunnelKey = tunnelNamedBy(password)
    const tunnel = tunnels.get(tunnelKey)
    const named = passwords.byIndex('tunnel', keyToString(tunnelKey))
    const { decision, until } = passwordDecision({ password, tunnel, named, now: at })
    const owned = await adopt(password, tunnel)
    if (!owned) return { result: 'settled', reason: 'Gone' }
    await report(TunnelPassword, owned, decision, { expiresAt: new Date(end).toISOString() })
    return { result: 'settled', reason: decision.reason, requeueAfterMs: until - at }
  }

  async function remove(password: TunnelPassword): Promise<void> {
    try {
      await store.delete(TunnelPassword, keyOf(password), { uid: password.metadata.uid })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }

  /**
   * Sets the owner of a password made with kubectl, so that it is deleted with its tunnel.
   * @returns the password; undefined when it is gone
   */
  async function adopt(password: TunnelPassword, tunnel: Tunnel | undefined): Promise<TunnelPassword | undefined> {
    const { uid, resourceVersion, ownerReferences = [] } = password.metadata
    if (!tunnel || tunnelOwnersOf(password.metadata).length > 0 || !isPasswordOf(password, tunnel)) return password
    const patch = { metadata: { ownerReferences: [...ownerReferences, ownerReferenceTo(Tunnel, tunnel)] } }
    try {
      return await store.mergePatch(TunnelPassword, keyOf(password), patch, { uid, resourceVersion })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
      return undefined
    }
  }
}

/** Observed state that a password's condition depends on. */
export interface ObservedPassword {
  /** Password that has not expired. */
  readonly password: TunnelPassword
  /** Tunnel of the name in its spec. */
  readonly tunnel: Tunnel | undefined
  /** All passwords for this name, itself included. */
  readonly named: readonly TunnelPassword[]
  /** Milliseconds since the epoch, like `until`. */
  readonly now: number
}

/** Condition of a password, and the time until which it holds without any change. Pure. */
export function passwordDecision(observed: ObservedPassword): { readonly decision: Decision; readonly until: number } {
  const { password, tunnel, named, now } = observed
  const { name } = password.spec.tunnelRef
  const until = endOfPassword(password)
  if (!tunnel) return { decision: notReady(PasswordReason.TunnelMissing, `there is no tunnel ${name}`), until }
  if (!isPasswordOf(password, tunnel)) {
    return { decision: notReady(PasswordReason.TunnelMissing, `it is for an earlier tunnel named ${name}`), until }
  }
  const before = passwordsBefore(password, { tunnel, named, now })
  if (before.length < LIVE_PASSWORDS_MAX) {
    return { decision: ready(PasswordReason.Active, `it opens ${name} until ${new Date(until).toISOString()}`), until }
  }
  const message = `${name} has ${before.length} older active passwords, which is the maximum: this one is rejected until one of them expires`
  return { decision: notReady(PasswordReason.TooManyPasswords, message), until: Math.min(until, ...before.map(endOfPassword)) }
}
