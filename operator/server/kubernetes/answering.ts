import { createHash, X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import { keyOf, type Store, isStoreError } from '../../../store/port.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
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

/** Error codes of Node for a certificate that is not trusted (crypto's X509 verification errors) or is for another name. */
const NOT_TRUSTED = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_SIGNATURE_FAILURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
/** SQL state `invalid_password` of PostgreSQL: Secret and engine have different passwords. */
const WRONG_PASSWORD = '28P01'

/** Creates the function that logs in to a server as its admin and ensures that it shows its newest certificate. @throws StoreError */
export function createAnswering({ store, logger }: AnsweringDeps): (serving: Serving) => Promise<ServerState> {
  /** Certificate or password for which a pod was restarted, by the pod's name. */
  const restarted = new Map<string, string>()

  async function ignoringGone(work: Promise<unknown>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!isStoreError(error, 'not_found') && !isStoreError(error, 'conflict')) throw error
    }
  }

  /** Announces the certificate in the pod's annotations, which makes the kubelet update the mounted Secret at once. */
  async function renew({ pod, engine, target, again }: Serving, newest: string): Promise<void> {
    if (pod.metadata.annotations?.[podAnnotations.certificate] !== newest) {
      const metadata = { annotations: { [podAnnotations.certificate]: newest } }
      await ignoringGone(store.mergePatch(Pod, keyOf(pod), { metadata }, { uid: pod.metadata.uid }))
      logger.info({ pod: pod.metadata.name }, 'new certificate announced to a database server')
    }
    await engine.reload(target)
    again()
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
    if (NOT_TRUSTED.has(code)) return restart(serving, { code, desired: newest, fault: 'its certificate is not trusted' })
    const desired = createHash('sha256').update(serving.target.password).digest('hex')
    if (code === WRONG_PASSWORD) return restart(serving, { code, desired, fault: 'it does not have the password of its Secret' })
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
    restarted.delete(serving.pod.metadata.name)
    if (shown && fingerprint(shown) !== newest) await renew(serving, newest)
    if (shown && !isFor(shown, address.host))
      return { phase: 'starting', message: 'its certificate for a new address is being loaded' }
    const { host, port, ca, client } = target
    return { phase: 'running', ...address, admin: { host, port, ca, client } }
  }
}
