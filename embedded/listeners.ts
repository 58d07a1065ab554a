import type { RequestListener } from 'node:http'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { respondStarting } from '../apiserver/http/default-responses.ts'
import {
  type BoundListener,
  type ListenerConfig,
  type Port,
  type RunningServers,
  startServers,
} from '../apiserver/http/servers.ts'
import type { Certificates } from '../operator/certificates/renewing-certificate.ts'
import type { Settings } from './settings.ts'

/** Maximum time for running requests at a stop, in milliseconds: the database servers need the rest of the five seconds. */
const DRAIN_MS = 1_500

/**
 * Host name of the dashboard. Browsers resolve it to loopback (RFC 6761, section 6.3) and trust plain HTTP of it, so that no certificate warning comes
 * first. No other program of this machine uses the name, so that its cookies reach no dev server.
 */
const DASHBOARD_HOST = 'dashboard.localhost'

type Apps = Readonly<Record<'shared' | 'dedicated', RequestListener>>

/** Open ports of the API. They respond with 503 until `serve` is called. */
export interface Listeners extends AsyncDisposable {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** URL of plain HTTP on loopback; null when it is off. */
  readonly sharedHttpUrl: string | null
  readonly dedicatedHttpUrl: string | null
  /** Origin of the dashboard for browsers on this machine. */
  readonly dashboardOrigin: string
  serve(apps: Apps): void
  /** Uses the current certificate for new connections. */
  renewCertificate(): void
}

/**
 * Opens the ports of both listeners. They are opened before the API, because its issuer is named after a port.
 * @throws MooringError `port_in_use`, `port_forbidden`, `address_unavailable`
 */
export async function openListeners(settings: Settings, certificates: Certificates): Promise<Listeners> {
  let apps: Apps = { shared: respondStarting, dedicated: respondStarting }
  const config = (listener: keyof Apps) => listenerConfig((req, res) => apps[listener](req, res), settings, listener)
  const servers: RunningServers = await startServers({
    host: settings.listen,
    certificate: () => certificates.current(),
    publicNames: [settings.publicHost ?? settings.listen, DASHBOARD_HOST],
    listeners: { shared: config('shared'), dedicated: config('dedicated') },
  })
  const { shared, dedicated } = servers.addresses
  const sharedUrl = urlOf(settings.listen, shared.https.port)
  return {
    sharedUrl,
    dedicatedUrl: urlOf(settings.listen, dedicated.https.port),
    sharedHttpUrl: httpUrlOf(shared),
    dedicatedHttpUrl: httpUrlOf(dedicated),
    dashboardOrigin: shared.http ? `http://${DASHBOARD_HOST}:${shared.http.port}` : sharedUrl,
    serve: (all) => void (apps = all),
    renewCertificate: () => servers.renewCertificate(),
    [Symbol.asyncDispose]: () => servers.close(DRAIN_MS),
  }
}

function listenerConfig(app: RequestListener, settings: Settings, listener: keyof Apps): ListenerConfig {
  const port = (value: number | 'auto', flag: string): Port => ({ port: value === 'auto' ? 0 : value, flag })
  const http = settings[`${listener}HttpPort`]
  return {
    app,
    https: port(settings[`${listener}Port`], `--${listener}-port`),
    http: http === 'off' ? undefined : port(http, `--${listener}-http-port`),
  }
}

const httpUrlOf = ({ http }: BoundListener): string | null => (http ? `http://${http.address}:${http.port}` : null)

/** Returns the URL for callers on this machine. */
function urlOf(listen: string, port: number): string {
  const host = listen === '0.0.0.0' ? '127.0.0.1' : listen === '::' ? '[::1]' : listen.includes(':') ? `[${listen}]` : listen
  return `https://${host}:${port}`
}

/**
 * Whether an address can be in a certificate: a link-local address has a zone, and `0.0.0.0` and `::` are not addresses of a
 * server.
 */
const isUsable = (address: string) => isIP(address) !== 0 && !/^fe80:/i.test(address) && !/^[0.:]+$/.test(address)

/**
 * Returns the names in the certificate of a server that listens on `listen` and is reached from other machines as `publicHost`:
 * all names of this machine, and on `0.0.0.0` or `::` the addresses of all interfaces.
 */
export function serverNames(listen: string, publicHost: string = listen): readonly string[] {
  const all = listen === '0.0.0.0' || listen === '::'
  const addresses = all
    ? Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
    : [listen]
  const usable = addresses.filter(isUsable)
  const host = hostname().toLowerCase()
  const hosts = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(host) ? [host] : []
  const publicly = isIP(publicHost) === 0 || isUsable(publicHost) ? [publicHost] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...usable, ...hosts, ...publicly])]
}
