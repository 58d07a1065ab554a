import { issueCertificate, type KeyPair, renewalTime, stillGood } from './local-ca.ts'

export interface CertificatesDeps {
  readonly ca: KeyPair
  /** Host names and IP addresses of the certificate. */
  readonly names: readonly string[]
  /** Certificate of an earlier start; reused while it is valid. */
  readonly stored?: KeyPair | undefined
  readonly now?: () => Date
  /** Receives the error of a failed renewal. The renewal is tried again in an hour, and the certificate has a month left. */
  readonly onError?: (error: unknown) => void
}

/** Server certificate that is renewed at two thirds of its lifetime. */
export interface Certificates extends Disposable {
  current(): KeyPair
  /** Calls `handler` with each renewed certificate, for `setSecureContext` of a TLS server. */
  onRenew(handler: (renewed: KeyPair) => void): void
  /** Renews the certificate if it is due. An hourly timer calls this. */
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

  // Checked every hour: a timer holds at most 24.8 days, and stops while the machine sleeps.
  const timer = setInterval(() => void check().catch(onError), HOUR).unref()
  return {
    current: () => current,
    onRenew: (handler) => void handlers.push(handler),
    check,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
