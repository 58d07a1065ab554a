import type { TenantNamespace } from '../crds/tenant-namespace.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import type { Operator } from '../operator/operator.ts'
import { conditionOf, isReady } from '../store/conditions.ts'
import { HOME_NAMESPACE } from './installation.ts'

/** Maximum wait in milliseconds: a start takes at most one minute. */
const WARM_MS = 45_000

/**
 * Waits for a database server, so that the first request finds one, but at most `ms` milliseconds: crash recovery may take many
 * minutes, and a failed start would begin it again.
 * @returns whether a server is up
 * @throws the signal's reason when it aborts
 */
export async function warm(
  { servers, firstServer }: Pick<OperatorCaches, 'servers'> & Pick<Operator, 'firstServer'>,
  signal: AbortSignal,
  ms = WARM_MS,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let up = false
  const check = () => {
    // A status may date from before the last stop.
    if (up && servers.list().some(isReady)) resolve(true)
  }
  const giveUp = () => resolve(false)
  const unsubscribe = servers.onChange(check)
  const timer = setTimeout(giveUp, ms)
  signal.addEventListener('abort', giveUp)
  void firstServer.then(() => {
    up = true
    check()
  })
  if (signal.aborted) giveUp()
  const isUp = await promise
  clearTimeout(timer)
  unsubscribe()
  signal.removeEventListener('abort', giveUp)
  signal.throwIfAborted()
  return isUp
}

/**
 * Waits until the operator has reconciled the home namespace. It does not wait for Ready, which a namespace under deletion never
 * reaches.
 */
export async function homeReconciled({ tenantNamespaces }: OperatorCaches, signal: AbortSignal): Promise<void> {
  const check = (home: TenantNamespace | undefined) =>
    home?.metadata.deletionTimestamp !== undefined ? true : home && conditionOf(home, 'Ready') && true
  await tenantNamespaces.waitFor({ name: HOME_NAMESPACE }, check, signal)
}
