import { createHash, X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import { keyOf, type Store, isStoreError } from '../../../store/port.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import { UNTRUSTED } from '../../certificates/untrusted.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { ServerState } from '../runtime.ts'
import type { Address } from './addresses.ts'
import { fingerprint, isFor } from './certificate.ts'
import type { EnginePod } from './engine-pod.ts'
import { Pod } from '../../kubernetes/kinds.ts'
import { podAnnotations } from './stateful-set.ts'

export interface AnsweringDeps {
  readonly store: Pick<Store, 'mergePatch' | 'delete'>
  readonly logger: Logger
}

/** Server whose pod serves. */
export interface Serving {
  readonly engine: EnginePod
  readonly pod: Pod
  readonly address: Address
  readonly target: AdminTarget
  /** Certificate that the server should show. */
  readonly certificate: KeyPair
  /** Schedules a reconcile of the server in some seconds. */
  readonly again: () => void
}

/** Reason of a failed login, and the certificate or password that the server needs. */
interface Refusal {
  readonly code: string
  /** Fingerprint of the needed certificate, or hash of the needed password. */
  readonly desired: string
  readonly fault: string
}

/** Value of an annotation of a pod. */
interface Announcement {
  readonly annotation: string
  readonly value: string
}

/** Writes an annotation of a running pod, which makes the kubelet update the pod's volumes. @returns whether it was new @throws StoreError */
export async function announce(
  store: Pick<Store, 'mergePatch'>,
  pod: Pod,
  { annotation, value }: Announcement,
): Promise<boolean> {
  if (pod.metadata.annotations?.[annotation] === value) return false
  const metadata = { annotations: { [annotation]: value } }
  await ignoringGone(store.mergePatch(Pod, keyOf(pod), { metadata }, { uid: pod.metadata.uid }))
  return true
}

async function ignoringGone(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isStoreError(error, 'not_found') && !isStoreError(error, 'conflict')) throw error
  }
}

/** Creates the function that logs in to a server as its admin and ensures that it shows its newest certificate. @throws StoreError */
export function createAnswering({ store, logger }: AnsweringDeps): (serving: Serving) => Promise<ServerState> {
  /** Certificate or password for which a pod was restarted, by the pod's name. */
  const restarted = new Map<string, string>()

  /**
   * Announces the certificate in the pod's annotations, which makes the kubelet update the mounted Secret at once. A server that loads its
   * certificate only at its start is restarted.
   * @returns the state of a server that is restarted
   */
  async function renew(serving: Serving, newest: string): Promise<ServerState | undefined> {
    const { pod, engine, target, again } = serving
    if (await announce(store, pod, { annotation: podAnnotations.certificate, value: newest }))
      logger.info({ pod: pod.metadata.name }, 'new certificate announced to a database server')
    const isLoading = await engine.reload(target)
    if (!isLoading && restarted.get(pod.metadata.name) !== newest)
      return restart(serving, { code: 'renewed', desired: newest, fault: 'it loads its new certificate only at its start' })
    again()
    return undefined
  }

  /**
   * Restarts a server that rejects the login because its certificate is not trusted or its password differs from its Secret: it loads both
   * when it starts. One restart per certificate or password: when it does not help, another one will not either.
   */
  async function restart({ pod }: Serving, { code, desired, fault }: Refusal): Promise<ServerState> {
    const { name, uid } = pod.metadata
    if (restarted.get(name) === desired) return { phase: 'failed', reason: 'Crashed', message: `${fault} (${code})` }
    restarted.set(name, desired)
    logger.warn({ pod: name, code }, `a database server is restarted: ${fault}`)
    await ignoringGone(store.delete(Pod, keyOf(pod), { uid }))
    return { phase: 'starting', message: `it is restarted: ${fault}` }
  }

  async function refused(serving: Serving, newest: string, code: string): Promise<ServerState> {
    const { refusals } = serving.engine
    if (UNTRUSTED.has(code) || code === refusals.handshake)
      return restart(serving, { code, desired: newest, fault: 'its certificate is not trusted' })
    const desired = createHash('sha256').update(serving.target.password).digest('hex')
    if (code === refusals.password)
      return restart(serving, { code, desired, fault: 'it does not have the password of its Secret' })
    return { phase: 'failed', reason: 'Crashed', message: `it rejects the admin's login (${code})` }
  }

  return async function answering(serving) {
    const { engine, target, address, certificate } = serving
    let shown: X509Certificate | undefined
    const answer = await engine.logIn(target, (seen) => {
      shown = seen
    })
    if (answer.login === 'notYet') return { phase: 'starting', message: 'it does not accept logins yet' }
    const newest = fingerprint(new X509Certificate(certificate.certificate))
    if (answer.login === 'refused') return refused(serving, newest, answer.code)
    const isNewest = !shown || fingerprint(shown) === newest
    if (isNewest) restarted.delete(serving.pod.metadata.name)
    const renewing = isNewest ? undefined : await renew(serving, newest)
    if (renewing) return renewing
    if (shown && !isFor(shown, address.host))
      return { phase: 'starting', message: 'its certificate for a new address is being loaded' }
    const { host, port, adminAddress, ca, client, insiders } = target
    return { phase: 'running', ...address, admin: { host, port, adminAddress, ca, client, insiders } }
  }
}
