import { X509Certificate } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { openCa } from '../../operator/installation/ca.ts'
import { localIssuer } from '../../operator/tunnel/certificate-issuer.ts'
import { hostnameMark } from '../../operator/tunnel/hostname-mark.ts'
import { certificateName, certificateSecret, urlOf } from '../../operator/tunnel/resources.ts'
import type { Key, Store } from '../../store/port.ts'

const AT_ONCE = 32

/** Tunnel to copy, with its endpoint and the CA of its certificate. */
interface Model {
  readonly tunnel: Tunnel
  readonly endpoint: TunnelEndpoint
  readonly ca: KeyPair
}

/** Returns a valid hostname that contains the number. */
const hostnameOf = (number: number): string => number.toString(16).padStart(16, '0')

/**
 * Copies a settled tunnel until `count` tunnels exist, while no operator runs. Each copy has its own hostname and certificate,
 * and a status with them. @returns the hostnames
 */
export async function copyTunnel(store: Store, first: Key, count: number): Promise<readonly string[]> {
  const tunnel = await store.get(Tunnel, first)
  const endpoint = await store.get(TunnelEndpoint, { name: tunnel?.status?.endpointRef?.name ?? '' })
  if (!tunnel || !endpoint) throw new Error('there is no tunnel to copy')
  const model = { tunnel, endpoint, ca: await openCa(store) }
  let made = 0
  async function next(): Promise<void> {
    while (made < count - 1) await copy(store, model, ++made)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return [tunnel.status?.hostname ?? '', ...Array.from({ length: count - 1 }, (_, index) => hostnameOf(index + 1))]
}

async function copy(store: Store, { tunnel, endpoint, ca }: Model, number: number): Promise<void> {
  const hostname = hostnameOf(number)
  const domain = certificateName(endpoint, hostname)
  const at = new Date()
  const signed = await issueCertificate({ ca, names: [domain], now: at })
  await store.create(Secret, certificateSecret(endpoint, hostname, { ...signed, at }))
  const { metadata, spec, status } = tunnel
  const key = { namespace: metadata.namespace ?? '', name: `copy-${number}` }
  const mark = hostnameMark(localIssuer(() => ca).mac, key, hostname)
  await store.create(Tunnel, {
    metadata: { ...key, finalizers: [FINALIZER], annotations: { [annotations.hostname]: mark } },
    spec,
  })
  const expiresAt = new X509Certificate(signed.certificate).validToDate.toISOString()
  const certificate = { ...status?.certificate, status: 'valid' as const, domain, obtainedAt: at.toISOString(), expiresAt }
  const url = urlOf(endpoint, hostname)
  const conditions = status?.conditions?.map((condition) => ({ ...condition, message: url }))
  await store.patchStatus(Tunnel, key, { ...status, hostname, url, certificate, conditions })
}
