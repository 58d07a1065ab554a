import { X509Certificate } from 'node:crypto'
import { Secret } from '../../../crds/core.ts'
import { labels } from '../../../crds/names.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { unknownHostsSecret } from '../../../shared/edge-objects.ts'
import type { Store } from '../../../store/port.ts'
import { isPair, issueCertificate, type KeyPair, stillGood } from '../../certificates/local-ca.ts'
import { unknownHostNames } from '../../certificates/unknown-hosts.ts'
import { encodeSecret, keyPairIn } from '../../secret-data.ts'
import type { EdgeState } from '../runtime.ts'
import { keyIn, metadataOf } from './names.ts'

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
