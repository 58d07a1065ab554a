import { X509Certificate } from 'node:crypto'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE, labels } from '../../../crds/names.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { meshName, meshSecret, unknownHostsSecret, hostKeysSecret } from '../../../shared/edge-objects.ts'
import type { Store } from '../../../store/port.ts'
import { createCa, isPair, issueCertificate, type KeyPair, renewalTime, stillGood } from '../../certificates/local-ca.ts'
import { keepSecret, keptSecret } from '../../installation/kept-secret.ts'
import { decodeSecret, encodeSecret, keyPairIn } from '../../secret-data.ts'
import { ownersOf, type EdgeState } from '../runtime.ts'
import { keyIn, selectorOf, metadataOf } from './kinds.ts'
import { unknownHostNames } from '../../certificates/renewing-certificate.ts'

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

export interface UnknownHostsSecretDeps {
  readonly store: Store
  /** CA of the installation. */
  readonly ca: () => KeyPair
  readonly now: () => Date
}

/**
 * Keeps the Secret by which the edges of an endpoint answer unknown hosts (see {@link unknownHostNames}). Its certificate is renewed at two
 * thirds of its lifetime, and replaced when it was deleted or damaged by hand or another CA signed it.
 * @returns validity of the certificate for the endpoint's status: edges load a new certificate when the status changes
 */
export function createUnknownHostsKeeper(
  deps: UnknownHostsSecretDeps,
): (endpoint: TunnelEndpoint) => Promise<NonNullable<EdgeState['strangersCertificate']>> {
  const { store, now } = deps

  /** @param found existing Secret without a valid certificate */
  async function write(endpoint: TunnelEndpoint, found: Secret | undefined, { certificate, key }: KeyPair): Promise<void> {
    const metadata = metadataOf(endpoint, unknownHostsSecret(endpoint.metadata.name))
    const data = encodeSecret({ 'tls.crt': certificate, 'tls.key': key })
    if (!found) await store.create(Secret, { metadata, type: 'kubernetes.io/tls', data })
    else {
      const { ownerReferences } = metadata
      await store.mergePatch(Secret, keyIn(metadata.name), { metadata: { labels: metadata.labels, ownerReferences }, data })
    }
  }

  return async function keepUnknownHostsSecret(endpoint) {
    const request = { ca: deps.ca(), names: unknownHostNames(endpoint.spec.domain), now: now() }
    const found = await store.get(Secret, keyIn(unknownHostsSecret(endpoint.metadata.name)))
    const kept = found && keyPairIn(found)
    const isGood = kept !== undefined && isPair(kept) && stillGood(kept, request)
    const pair = isGood ? kept : await issueCertificate(request)
    if (!isGood || !isMarked(found, endpoint)) await write(endpoint, found, pair)
    const { validFromDate, validToDate } = new X509Certificate(pair.certificate)
    return { notBefore: validFromDate.toISOString(), notAfter: validToDate.toISOString() }
  }
}

/** Whether the Secret has the label by which edges find it, and its endpoint as the owner. */
function isMarked(secret: Secret | undefined, { metadata: { name, uid } }: TunnelEndpoint): boolean {
  const { labels: given, ownerReferences = [] } = secret?.metadata ?? {}
  return given?.[labels.endpoint] === name && ownerReferences.some((owner) => owner.uid === uid)
}

/** Endpoint, as far as the names of its Secrets follow from it. */
export type SecretsOf = Pick<TunnelEndpoint, 'metadata' | 'spec'>

/** Detects changes of an endpoint's Secrets, which are not watched. */
export interface SecretChanges {
  /** Whether a Secret changed or was deleted since the last call. True at the first call. */
  differ(endpoint: SecretsOf): Promise<boolean>
  forget(endpoint: string): void
}

const namesOf = ({ metadata: { name }, spec: { domain } }: SecretsOf): readonly string[] => [
  ...[hostKeysSecret(domain), meshSecret(name), unknownHostsSecret(name)],
]

export function createSecretChanges(store: Pick<Store, 'get'>): SecretChanges {
  const seen = new Map<string, string>()

  async function versionOf(name: string): Promise<string> {
    const found = await store.get(Secret, keyIn(name))
    return found ? `${found.metadata.uid} ${found.metadata.resourceVersion}` : 'none'
  }

  return {
    async differ(endpoint) {
      const { name } = endpoint.metadata
      const versions = (await Promise.all(namesOf(endpoint).map(versionOf))).join()
      const before = seen.get(name)
      seen.set(name, versions)
      return versions !== before
    },
    forget: (endpoint) => void seen.delete(endpoint),
  }
}
