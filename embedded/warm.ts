import type { TenantNamespace } from '../crds/tenant-namespace.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import type { Operator } from '../operator/operator.ts'
import { conditionOf, isReady } from '../store/conditions.ts'
import { HOME } from './installation.ts'

/** A start takes a minute at the most (surface, section 1). */
const WARM_MS = 45_000

/**
 * Waits for a database server, so that the first request finds one, but not for longer than `ms`: one that recovers from a crash may take
 * many minutes, and giving up the start would begin its recovery anew.
 * @returns whether one is up
 * @throws the signal's reason when it aborts
 */
export async function warm(
  { servers, firstServer }: Pick<OperatorCaches, 'servers'> & Pick<Operator, 'firstServer'>,
  signal: AbortSignal,
  ms = WARM_MS,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let up = false
  const look = () => {
    // What a status says may be from before the last stop.
    if (up && servers.list().some(isReady)) resolve(true)
  }
  const giveUp = () => resolve(false)
  const unsubscribe = servers.onChange(look)
  const timer = setTimeout(giveUp, ms)
  signal.addEventListener('abort', giveUp)
  void firstServer.then(() => {
    up = true
    look()
  })
  if (signal.aborted) giveUp()
  const isUp = await promise
  clearTimeout(timer)
  unsubscribe()
  signal.removeEventListener('abort', giveUp)
  signal.throwIfAborted()
  return isUp
}

/** Waits until the operator has looked at the home namespace. Ready is not waited for: one that is being deleted never will be. */
export async function homeJudged({ tenantNamespaces }: OperatorCaches, signal: AbortSignal): Promise<void> {
  const look = (home: TenantNamespace | undefined) =>
    home?.metadata.deletionTimestamp !== undefined ? true : home && conditionOf(home, 'Ready') && true
  await tenantNamespaces.waitFor({ name: HOME }, look, signal)
}
