import { once } from 'node:events'
import { connect } from 'node:net'
import type { Logger } from 'pino'
import type { KubernetesClient } from '../../../store/kubernetes/client.ts'
import { objectPath } from '../../../store/kubernetes/resource.ts'
import { storeErrorOf } from '../../../store/kubernetes/status.ts'
import { isStoreError, keyOf, type Key } from '../../../store/port.ts'
import { type Clock, pause } from '../../../shared/timers.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import { Pod } from '../../kubernetes/kinds.ts'
import { mainContainersOf } from '../../kubernetes/pod-state.ts'
import { HANG_CHECK } from '../process/supervisor.ts'
import type { EnginePod } from './engine-pod.ts'

const CONNECT_MS = 2_000
/** Time in seconds that a deleted pod gets to end by itself before the kubelet kills it. A server that hangs never ends by itself. */
const GRACE_S = 5

export interface HangCheckDeps {
  readonly client: Pick<KubernetesClient, 'request'>
  /** Returns the pod that has this name now. */
  readonly podOf: (key: Key) => Pod | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** Server that has accepted a login. */
interface Checked {
  readonly engine: Pick<EnginePod, 'logIn'>
  readonly pod: Pod
  readonly target: AdminTarget
}

/** Check of servers whose engine may hang instead of exiting. */
export interface HangCheck {
  /** Checks a server from now on, until its container ends. The server must have accepted a login just now. */
  watch(server: string, checked: Checked): void
  /** Ends the checks of a server. */
  forget(server: string): void
  /** Runs until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

/**
 * Creates the check, which deletes the pod of a server that hangs. A server hangs when six logins in a row, 5 s apart, get no answer although
 * the port accepts connections. The kubelet's probes of the port do not notice that. A server whose port is closed, or cannot be reached from
 * here, is left to the kubelet.
 */
export function createHangCheck({ client, podOf, clock, logger }: HangCheckDeps): HangCheck {
  const servers = new Map<string, Checked & { readonly failures: number }>()

  async function check(server: string): Promise<void> {
    const checked = servers.get(server)
    if (!checked) return
    const { engine, pod, target } = checked
    const hangs = (await engine.logIn(target, () => undefined)).login === 'notYet' && (await isOpen(target))
    // A reconcile may have logged in meanwhile: then the count of failures begins again.
    if (servers.get(server) !== checked) return
    const present = podOf(keyOf(pod))
    if (!present || runOf(present) !== runOf(pod) || present.metadata.deletionTimestamp !== undefined) {
      servers.delete(server)
      return
    }
    servers.set(server, { ...checked, failures: hangs ? checked.failures + 1 : 0 })
    if (checked.failures + 1 < HANG_CHECK.failures || !hangs) return
    logger.warn({ pod: pod.metadata.name }, 'database server hangs: its pod is deleted')
    servers.delete(server)
    await deletePod(client, pod)
  }

  return {
    watch(server, checked) {
      servers.set(server, { ...checked, failures: 0 })
    },
    forget: (server) => void servers.delete(server),
    async run(signal) {
      while (!signal.aborted) {
        await pause(clock, HANG_CHECK.everyMs, signal)
        const checks = await Promise.allSettled([...servers.keys()].map(check))
        for (const { reason } of checks.filter((result) => result.status === 'rejected')) {
          if (!isStoreError(reason, 'not_found') && !isStoreError(reason, 'conflict'))
            logger.warn({ err: reason as unknown }, 'a database server was not checked')
        }
      }
    },
  }
}

/** Deletes a pod whose server would not end by itself. Its StatefulSet creates the next one. @throws StoreError */
export async function deletePod(client: Pick<KubernetesClient, 'request'>, { metadata }: Pod): Promise<void> {
  const { uid, namespace, name } = metadata
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: GRACE_S, preconditions: { uid } }
  const request = { method: 'DELETE', path: objectPath(Pod, { namespace, name }), body } as const
  const answer = await client.request(request)
  if (answer.status >= 300) throw storeErrorOf(answer, { kind: Pod, namespace, name, request })
}

/** Returns a text that identifies one run of a server's container. */
const runOf = (pod: Pod): string => `${pod.metadata.uid} ${mainContainersOf(pod)[0]?.restartCount ?? 0}`

/** Whether the port of a server accepts connections. */
async function isOpen({ host, port }: AdminTarget): Promise<boolean> {
  const socket = connect({ host, port, signal: AbortSignal.timeout(CONNECT_MS) })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
