import type { Tunnel } from '../../crds/tunnel.ts'
import { PasswordReason, TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady, ready } from '../../store/conditions.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface PasswordReconcilerDeps {
  readonly store: Store
  readonly tunnels: Cache<typeof Tunnel>
  readonly passwords: Cache<typeof TunnelPassword>
  readonly report: Report
  readonly now: () => Date
}

/** Says of each temporary password whether it opens its tunnel, and removes it once its time has passed. */
export function createPasswordReconciler({ store, tunnels, passwords, report, now }: PasswordReconcilerDeps) {
  return async function reconcilePassword(key: Key): Promise<Outcome> {
    const password = passwords.get(key)
    if (!password || password.metadata.deletionTimestamp !== undefined) return { verdict: 'settled', reason: 'Gone' }
    const leftMs = Date.parse(password.spec.expiresAt) - now().getTime()
    if (leftMs <= 0) {
      await remove(password)
      return { verdict: 'settled', reason: PasswordReason.Expired }
    }
    const { namespace } = password.metadata
    const { name } = password.spec.tunnelRef
    const verdict = tunnels.get({ namespace, name })
      ? ready(PasswordReason.Active, `it opens ${name} until ${password.spec.expiresAt}`)
      : notReady(PasswordReason.TunnelMissing, `there is no tunnel ${name}`)
    await report(TunnelPassword, password, verdict)
    return { verdict: 'settled', reason: verdict.reason, requeueAfterMs: leftMs }
  }

  async function remove(password: TunnelPassword): Promise<void> {
    try {
      await store.delete(TunnelPassword, keyOf(password), { uid: password.metadata.uid })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }
}
