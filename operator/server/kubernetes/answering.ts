import { X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import { keyOf } from '../../../store/key-string.ts'
import type { Store } from '../../../store/port.ts'
import { isStoreError } from '../../../store/errors.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { ServerState } from '../runtime.ts'
import type { Address } from './addresses.ts'
import { fingerprint, isFor } from './certificate.ts'
import type { EnginePod } from './engine-pod.ts'
import { Pod } from './kinds.ts'
import { podAnnotations } from './stateful-set.ts'

export interface AnsweringDeps {
  readonly store: Pick<Store, 'mergePatch' | 'delete'>
  readonly logger: Logger
}

/** A server whose pod serves. */
export interface Serving {
  readonly engine: EnginePod
  readonly pod: Pod
  readonly address: Address
  readonly target: AdminTarget
  /** The certificate that it should show. */
  readonly certificate: KeyPair
  /** Has the server looked at again in some seconds. */
  readonly again: () => void
}

/** What Node says of a certificate that it does not trust (crypto's X509 verification errors), or that is for another name. */
const NOT_TRUSTED = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_SIGNATURE_FAILURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
/** Logs in to a server as its admin, and sees to it that it shows its newest certificate. @throws StoreError */
export function createAnswering({ store, logger }: AnsweringDeps): (serving: Serving) => Promise<ServerState> {
  /** Name of a pod → the certificate that it was restarted for. */
  const restarted = new Map<string, string>()

  async function ignoringGone(work: Promise<unknown>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!isStoreError(error, 'not_found') && !isStoreError(error, 'conflict')) throw error
    }
  }

  /** The kubelet brings a changed Secret into the pod in its own time, at once when the pod's annotations change. */
  async function renew({ pod, engine, target, again }: Serving, newest: string): Promise<void> {
    if (pod.metadata.annotations?.[podAnnotations.certificate] !== newest) {
      const metadata = { annotations: { [podAnnotations.certificate]: newest } }
      await ignoringGone(store.mergePatch(Pod, keyOf(pod), { metadata }, { uid: pod.metadata.uid }))
      logger.info({ pod: pod.metadata.name }, 'a new certificate is brought to a database server')
    }
    await engine.reload(target)
    again()
  }

  /** A server that shows a certificate which cannot be trusted any more cannot be told to reload: it starts anew, once a certificate. */
  async function restart({ pod }: Serving, newest: string, code: string): Promise<ServerState> {
    const { name, uid } = pod.metadata
    if (restarted.get(name) === newest) {
      return { phase: 'failed', reason: 'Crashed', message: `its certificate is not trusted (${code})` }
    }
    restarted.set(name, newest)
    logger.warn({ pod: name, code }, 'a database server is restarted: its certificate is not trusted')
    await ignoringGone(store.delete(Pod, keyOf(pod), { uid }))
    return { phase: 'starting', message: 'it is restarted to show a certificate that is trusted' }
  }

  return async function answering(serving) {
    const { engine, target, address, certificate } = serving
    let shown: X509Certificate | undefined
    const answer = await engine.logIn(target, (seen) => {
      shown = seen
    })
    if (answer.login === 'notYet') return { phase: 'starting', message: 'it does not take logins yet' }
    const newest = fingerprint(new X509Certificate(certificate.certificate))
    if (answer.login === 'refused') {
      if (NOT_TRUSTED.has(answer.code)) return restart(serving, newest, answer.code)
      return { phase: 'failed', reason: 'Crashed', message: `it refuses the admin's login (${answer.code})` }
    }
    if (shown && fingerprint(shown) !== newest) await renew(serving, newest)
    if (shown && !isFor(shown, address.host))
      return { phase: 'starting', message: 'its certificate for a new address is on its way' }
    const { host, port, ca } = target
    return { phase: 'running', ...address, admin: { host, port, ca } }
  }
}
