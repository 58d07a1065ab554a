import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { issueCertificate, type KeyPair, renewalTime, stillGood } from './local-ca.ts'

export interface CertificatesDeps {
  readonly ca: KeyPair
  /** Host names and IP addresses that the certificate is for, see {@link serverNames}. */
  readonly names: readonly string[]
  /** A certificate of an earlier start; used on while it is good. */
  readonly stored?: KeyPair | undefined
  readonly now?: () => Date
  /** A renewal failed; it is tried again in an hour, and the certificate has a month left. */
  readonly onError?: (error: unknown) => void
}

/** A server certificate that renews itself at two thirds of its lifetime. */
export interface Certificates extends Disposable {
  current(): KeyPair
  /** Calls `handler` with each renewed certificate: a TLS server takes it by `setSecureContext`. */
  onRenew(handler: (renewed: KeyPair) => void): void
  /** Renews when it is due. The hourly timer calls this. */
  check(): Promise<void>
}

const HOUR = 3_600_000

export async function createCertificates(deps: CertificatesDeps): Promise<Certificates> {
  const { ca, names, stored, now = () => new Date(), onError = () => undefined } = deps
  const handlers: ((renewed: KeyPair) => void)[] = []
  let current =
    stored && stillGood(stored, { ca, names, now: now() }) ? stored : await issueCertificate({ ca, names, now: now() })

  async function check(): Promise<void> {
    if (now() < renewalTime(current.certificate)) return
    current = await issueCertificate({ ca, names, now: now() })
    for (const handler of handlers) handler(current)
  }

  // Looked at hourly rather than slept for: a timer holds at most 24.8 days, and stands still while the machine does.
  const timer = setInterval(() => void check().catch(onError), HOUR).unref()
  return {
    current: () => current,
    onRenew: (handler) => void handlers.push(handler),
    check,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** Every name that a server listening on `listen` is reached by on this machine; on `0.0.0.0` or `::`, those of all interfaces. */
export function serverNames(listen: string): readonly string[] {
  const all = listen === '0.0.0.0' || listen === '::'
  // A link-local address carries a zone and is no use in a certificate.
  const addresses = all
    ? Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
    : [listen]
  const usable = addresses.filter((address) => isIP(address) !== 0 && !/^fe80:/i.test(address))
  const host = hostname().toLowerCase()
  const hosts = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(host) ? [host] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...usable, ...hosts])]
}
