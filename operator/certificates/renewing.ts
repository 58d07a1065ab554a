import { issueCertificate, type KeyPair, renewalTime, stillGood } from './local-ca.ts'

export interface CertificatesDeps {
  readonly ca: KeyPair
  /** Host names and IP addresses that the certificate is for. */
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
