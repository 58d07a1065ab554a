import { X509Certificate } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import { annotations, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import { ownCertificate } from '../../shared/edge-objects.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Decision, notReady } from '../../store/conditions.ts'
import { keyOf, keyToString } from '../../store/port.ts'
import { AcmeError } from '../acme/acme-error.ts'
import { isReported } from '../acme/order-failure.ts'
import { stepDone } from '../reporter.ts'
import { keyPairIn } from '../secret-data.ts'
import type { ObserveDeps } from './observe.ts'
import { REVOCATION_MS } from './plan.ts'

/** Interval of attempts at a CA that does not answer, in milliseconds. */
const AGAIN_MS = 15_000

/** Deletion that waits because a certificate is not revoked. */
export interface Held {
  readonly decision: Decision
  readonly requeueAfterMs: number
}

/** CA whose last answer was a failure that may pass. */
interface Suspect {
  readonly retryAt: number
  readonly message: string
}

export interface Revoker {
  /** Revokes the certificates that a deleted tunnel has from a CA. Returns why not, or undefined when the deletion may go on. */
  revoke(tunnel: Tunnel, settings: AcmeSettings): Promise<Held | undefined>
}

export function createRevoker({ store, issuers, now }: Pick<ObserveDeps, 'store' | 'issuers' | 'now'>): Revoker {
  /** CAs by directory. One deletion at a time finds out whether such a CA is back, so that the others hold up no other work. */
  const suspects = new Map<string, Suspect>()

  /** Valid certificates of the tunnel from this CA: the installed one, and one that is about to be installed. */
  async function certificatesOf(name: string, { directoryUrl }: AcmeSettings): Promise<readonly string[]> {
    const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
    const isFrom = secret?.metadata.annotations?.[annotations.acmeDirectory] === directoryUrl
    const { pair, directory } = (await issuers.acme?.progress(name)) ?? {}
    const found = [isFrom ? keyPairIn(secret).certificate : '', directory === directoryUrl ? (pair?.certificate ?? '') : '']
    return [...new Set(found)].filter((pem) => isUnexpired(pem, now()))
  }

  /** Returns the failure of the CA that is known or found; `waitMs` is the time until the next attempt. */
  async function attempted(settings: AcmeSettings, certificates: readonly string[]): Promise<Failed | undefined> {
    const { directoryUrl } = settings
    const retryAt = now().getTime() + AGAIN_MS
    const suspect = suspects.get(directoryUrl)
    if (suspect) {
      const waitMs = suspect.retryAt - now().getTime()
      if (waitMs > 0) return { message: suspect.message, waitMs }
      suspects.set(directoryUrl, { ...suspect, retryAt })
    }
    try {
      for (const certificate of certificates) await issuers.acme?.revoke(settings, certificate)
    } catch (error) {
      if (!(error instanceof MooringError && isReported(error))) throw error
      const { message } = error
      if (error instanceof AcmeError && !error.isTransient) return { message, waitMs: undefined }
      suspects.set(directoryUrl, { message, retryAt })
      return { message, waitMs: AGAIN_MS }
    }
    suspects.delete(directoryUrl)
    return undefined
  }

  return {
    async revoke({ status, metadata }, settings) {
      const certificates = await certificatesOf(ownCertificate(status?.hostname ?? ''), settings)
      if (certificates.length === 0) return undefined
      const failure = await attempted(settings, certificates)
      if (failure) return held(failure, leftOf(metadata.deletionTimestamp, now()))
      stepDone('tunnel.revoked', keyToString(keyOf({ metadata })))
      return undefined
    },
  }
}

/** Failed revocation. `waitMs`: time until the next attempt in milliseconds; undefined when none follows. */
interface Failed {
  readonly message: string
  readonly waitMs: number | undefined
}

/** Milliseconds for which a revocation may still hold up the deletion. After a change of the clock at most the whole time. */
const leftOf = (deletionTimestamp = '', now: Date): number =>
  Math.min(REVOCATION_MS, Date.parse(deletionTimestamp) + REVOCATION_MS - now.getTime())

function held({ message, waitMs }: Failed, leftMs: number): Held {
  if (waitMs === undefined || leftMs <= 0) {
    const decision = notReady(TunnelReason.CertificateNotRevoked, `its certificate is not revoked: ${message}`)
    return { decision, requeueAfterMs: 1 }
  }
  const decision = notReady(TunnelReason.RevokingCertificate, `its certificate is to be revoked: ${message}`)
  return { decision, requeueAfterMs: Math.max(1, Math.min(waitMs, leftMs)) }
}

function isUnexpired(pem: string, now: Date): boolean {
  try {
    return new X509Certificate(pem).validToDate > now
  } catch {
    return false
  }
}
