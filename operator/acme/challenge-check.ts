import { lookup as systemLookup, Resolver } from 'node:dns/promises'
import { request } from 'node:http'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import { checkTlsAlpn, type ChallengeProblem } from './tls-alpn-check.ts'
import { MooringError } from '../../shared/errors.ts'
import { CHALLENGE_PATH } from '../../shared/tunnel-decisions.ts'

/** Challenge of type http-01 or tls-alpn-01, which the edges answer. */
export interface CheckedChallenge {
  /** Domain name of the certificate. */
  readonly identifier: string
  readonly token: string
  /** Token and thumbprint of the account's key (RFC 8555, section 8.1). */
  readonly keyAuthorization: string
  readonly settings: Pick<AcmeSettings, 'directoryUrl' | 'nameservers' | 'challenge'>
  /** Port that visitors of the endpoint use for HTTP. */
  readonly publicHttpPort: number
  /** Port that visitors of the endpoint use for HTTPS. */
  readonly publicHttpsPort: number
}

/** Port that a public CA connects to for the challenge http-01 (RFC 8555, section 8.3). */
const CA_PORT = 80
/** Port that a public CA connects to for the challenge tls-alpn-01 (RFC 8737, section 3). */
const CA_TLS_PORT = 443
const TIMEOUT_MS = 5_000
const BODY_MAX = 4_096

/**
 * Checks a challenge as the CA will: fetches its file, or opens a TLS connection. A wrong DNS record or port so costs no failed authorization. Redirects are not followed. The body
 * is only compared with the expected text and never shown, because the tunnel's backend may have sent it. Returns undefined when the response
 * is right.
 */
export async function checkChallenge(challenge: CheckedChallenge): Promise<ChallengeProblem | undefined> {
  const { identifier, settings } = challenge
  let addresses: readonly string[]
  try {
    addresses = await addressesOf(identifier, settings)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return {
      early: false,
      message: `DNS has no address for ${identifier} (${code}): make an A or AAAA record for *.${parentOf(identifier)}`,
    }
  }
  for (const address of addresses) {
    const failure = await checkAt(address, challenge)
    if (failure) return failure
  }
  return undefined
}

/** Checks one address, at the port that the CA connects to. */
function checkAt(address: string, challenge: CheckedChallenge): Promise<ChallengeProblem | undefined> {
  const { settings, publicHttpPort, publicHttpsPort } = challenge
  const isTest = isTestCa(settings.directoryUrl)
  if (settings.challenge !== 'tls-alpn-01') return fetchFrom(address, isTest ? publicHttpPort : CA_PORT, challenge)
  return checkTlsAlpn(challenge, { address, port: isTest ? publicHttpsPort : CA_TLS_PORT })
}

const parentOf = (name: string): string => name.slice(name.indexOf('.') + 1)

async function fetchFrom(address: string, port: number, challenge: CheckedChallenge): Promise<ChallengeProblem | undefined> {
  const { identifier, token, keyAuthorization } = challenge
  const where = `http://${identifier}${port === CA_PORT ? '' : `:${port}`}${CHALLENGE_PATH} at ${address}`
  try {
    const { status, body } = await fetched({ address, port, host: identifier, path: `${CHALLENGE_PATH}${token}` })
    if (status === 200 && body.trim() === keyAuthorization) return undefined
    const message = `${where} is not answered by an edge of this installation (HTTP status ${status}): its record must lead to the edges, port ${port} to their HTTP port`
    return { early: true, message }
  } catch (error) {
    const why = error instanceof Error ? ('code' in error ? String(error.code) : error.message) : String(error)
    return { early: false, message: `${where} cannot be reached (${why}): open port ${port} and forward it to the edges` }
  }
}

interface Fetched {
  readonly status: number
  readonly body: string
}

interface Target {
  readonly address: string
  readonly port: number
  readonly host: string
  readonly path: string
}

function fetched({ address, port, host, path }: Target): Promise<Fetched> {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>()
  const headers = { Host: port === CA_PORT ? host : `${host}:${port}`, 'User-Agent': 'mooring', Connection: 'close' }
  const outgoing = request({ host: address, port, path, headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
  outgoing.once('error', (error) => reject(error.name === 'AbortError' ? new Error('no answer in 5 s') : error))
  outgoing.once('response', (incoming) => {
    let body = ''
    const end = () => resolve({ status: incoming.statusCode ?? 0, body })
    incoming.setEncoding('latin1')
    incoming.on('data', (text: string) => {
      body += text
      if (body.length <= BODY_MAX) return
      end()
      incoming.destroy()
    })
    incoming.once('end', end)
    incoming.once('error', reject)
  })
  outgoing.end()
  return promise
}

/** Maximum number of addresses that are checked. All must answer, since the CA may choose any of them. */
const ADDRESSES_MAX = 4

async function addressesOf(name: string, settings: CheckedChallenge['settings']): Promise<readonly string[]> {
  // Names under localhost are the loopback addresses (RFC 6761, section 6.3); many resolvers do not know them.
  if (name.endsWith('.localhost')) return ['127.0.0.1']
  const addresses = resolved(name, settings.nameservers)
  // A CA on this machine is a test CA, which may have a DNS server of its own. The machine's DNS may then answer late or not at all.
  const isOwn = settings.nameservers.length === 0 && isLoopback(hostOf(settings.directoryUrl))
  const found = isOwn ? await Promise.race([addresses.catch(() => LOOPBACK), delay(OWN_DNS_MS, LOOPBACK)]) : await addresses
  return found.slice(0, ADDRESSES_MAX)
}

const LOOPBACK = ['127.0.0.1'] as const
const OWN_DNS_MS = 100

async function resolved(name: string, nameservers: readonly string[]): Promise<readonly string[]> {
  if (nameservers.length === 0) return (await systemLookup(name, { all: true })).map(({ address }) => address)
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  resolver.setServers(nameservers)
  const families = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = families.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  if (found.length > 0) return found
  const [ipv4] = families
  throw ipv4.status === 'rejected' ? ipv4.reason : new MooringError('no_address', 'no address')
}

const hostOf = (url: string): string => (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '')

const isLoopback = (host: string): boolean => /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)

/** Names that public DNS does not have: RFC 6761 (section 6.2), RFC 9476, and those of the DNS of a cluster. */
const INSIDE = /(\.|^)(test|internal|svc|cluster\.local)$/
/** Private addresses: RFC 1918, and Unique Local IPv6 Unicast Addresses (RFC 4193). */
const PRIVATE = { 4: /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/, 6: /^f[cd]/i }

/**
 * Whether a directory is that of a test CA: at `localhost`, a loopback or private address, or a name that public DNS does not have, such as that of a
 * Service. Such a CA connects to the port in its own configuration, any other CA to port 80.
 */
export function isTestCa(directoryUrl: string): boolean {
  const host = hostOf(directoryUrl)
  const version = isIP(host)
  if (version === 4 || version === 6) return isLoopback(host) || PRIVATE[version].test(host)
  return isLoopback(host) || INSIDE.test(host)
}
