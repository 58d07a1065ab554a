import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { unknownHostsSecret } from '../shared/edge-objects.ts'
import type { Cache } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { createPems, type Pem, type PemStore } from './pems.ts'
import type { RenewedCertificate } from './proxy/listener.ts'

export interface UnknownHostsDeps {
  readonly store: Pick<Store, 'get'>
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly endpoints: Pick<Cache<typeof TunnelEndpoint>, 'get' | 'onChange'>
  /** Storage in which the certificate outlives the process. */
  readonly kept: PemStore
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/**
 * Creates the certificate for unknown hosts, fetched by name whenever the endpoint's status reports another one. Until then, and while
 * the API is away, the stored one is used. There is none when the status never reported one.
 */
export function createUnknownHostsCertificate({
  store,
  endpoint,
  endpoints,
  kept,
  log,
}: UnknownHostsDeps): RenewedCertificate & Disposable {
  const name = unknownHostsSecret(endpoint)
  const pems = createPems({ store, endpoint, kept: only(name, kept), log })
  const handlers: (() => void)[] = []
  let current = usable(pems.held(name))
  /** `notBefore` that the endpoint's status reported last. */
  let lastReported: string | undefined
  if (!current) pems.forget(name)

  function check(): void {
    const reported = endpoints.get({ name: endpoint })?.status?.strangersCertificate?.notBefore
    if (reported === undefined || reported === lastReported) return
    lastReported = reported
    if (!current || !pems.isCurrent(name, reported)) pems.fetchInBackground(name, reported, arrived)
  }

  /**
   * Takes over the fetched certificate.
   * @throws Error when it is not usable: the operator replaces it, and the previous one stays in use
   */
  function arrived(): void {
    const pem = usable(pems.held(name))
    if (!pem) {
      pems.discard(name)
      kept.keep(name, current)
      throw new Error(`the certificate in the Secret ${name} is not usable`)
    }
    current = pem
    log.info({ secret: name }, 'the certificate for unknown hosts has changed')
    for (const handler of handlers) handler()
  }

  const stopWatching = endpoints.onChange((key) => key.name === endpoint && check())
  check()
  return {
    current: () => current,
    onRenew: (handler) => void handlers.push(handler),
    [Symbol.dispose]() {
      stopWatching()
      pems[Symbol.dispose]()
    },
  }
}

function usable(pem: Pem | undefined): Pem | undefined {
  try {
    if (pem) createSecureContext({ cert: pem.certificate, key: pem.key })
    return pem
  } catch {
    return undefined
  }
}

const only = (name: string, kept: PemStore): PemStore => ({
  all() {
    const pem = kept.all().get(name)
    return new Map(pem ? [[name, pem]] : [])
  },
  keep: (of, pem) => kept.keep(of, pem),
})
