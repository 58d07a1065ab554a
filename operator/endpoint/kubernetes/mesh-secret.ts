import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { meshName, meshSecret } from '../../../shared/edge-objects.ts'
import type { Store } from '../../../store/port.ts'
import { createCa, isPair, issueCertificate, type KeyPair, renewalTime, stillGood } from '../../certificates/local-ca.ts'
import { keepSecret, keptSecret } from '../../installation/kept-secret.ts'
import { decodeSecret } from '../../secret-data.ts'
import { ownersOf } from '../owners.ts'
import { keyIn, selectorOf } from './names.ts'

export interface MeshSecretDeps {
  readonly store: Store
  readonly now: () => Date
}

/** Host name in the certificate of an endpoint's edges. */
export const meshHost = (endpoint: string): string => `${meshName(endpoint)}.${SYSTEM_NAMESPACE}.svc`

/** Keeps the Secrets by which the edges of an endpoint authenticate each other. */
export interface MeshKeeper {
  /**
   * Keeps a CA of the endpoint and one certificate of it for both ends of a connection, renewed at two thirds of its lifetime. Values that
   * were deleted or damaged by hand are restored from memory, as edges load changes one after the other; unknown values are made anew.
   */
  keep(endpoint: TunnelEndpoint): Promise<void>
  /** Forgets a deleted endpoint. */
  forget(endpoint: string): void
}

export function createMeshKeeper({ store, now }: MeshSecretDeps): MeshKeeper {
  const known = new Map<string, Texts>()

  async function write(endpoint: TunnelEndpoint, desired: Texts, isThere: boolean): Promise<void> {
    const { name } = endpoint.metadata
    if (isThere) await keepSecret(store, meshSecret(name), desired)
    else {
      const about = { ownerReferences: ownersOf(endpoint), labels: selectorOf(name) }
      await keptSecret(store, meshSecret(name), () => Promise.resolve(desired), about)
    }
  }

  return {
    async keep(endpoint) {
      const { name } = endpoint.metadata
      const found = await store.get(Secret, keyIn(meshSecret(name)))
      const texts = textsOf(found)
      const isWhole = isGood(texts, name, now())
      const desired = isWhole ? texts : await remade(known.get(name) ?? texts, name, now())
      known.set(name, desired)
      if (!isWhole) await write(endpoint, desired, found !== undefined)
    },
    forget: (endpoint) => void known.delete(endpoint),
  }
}

type Texts = Readonly<Record<'ca.crt' | 'ca.key' | 'tls.crt' | 'tls.key', string>>

function textsOf(secret: Secret | undefined): Texts {
  const text = (key: string): string => decodeSecret(secret?.data ?? {}, key) ?? ''
  return { 'ca.crt': text('ca.crt'), 'ca.key': text('ca.key'), 'tls.crt': text('tls.crt'), 'tls.key': text('tls.key') }
}

const authorityIn = (texts: Texts): KeyPair => ({ certificate: texts['ca.crt'], key: texts['ca.key'] })
const isAuthority = (ca: KeyPair, now: Date): boolean => isPair(ca) && now < renewalTime(ca.certificate)

function isGood(texts: Texts, endpoint: string, now: Date): boolean {
  const ca = authorityIn(texts)
  const own = { certificate: texts['tls.crt'], key: texts['tls.key'] }
  return isAuthority(ca, now) && isPair(own) && stillGood(own, { ca, names: [meshHost(endpoint)], now })
}

/** Returns the valid values of `before`, and new ones for the rest. */
async function remade(before: Texts, endpoint: string, now: Date): Promise<Texts> {
  if (isGood(before, endpoint, now)) return before
  const former = authorityIn(before)
  const ca = isAuthority(former, now) ? former : await createCa(now)
  const { certificate, key } = await issueCertificate({ ca, names: [meshHost(endpoint)], now, usage: 'peer' })
  return { 'ca.crt': ca.certificate, 'ca.key': ca.key, 'tls.crt': certificate, 'tls.key': key }
}
