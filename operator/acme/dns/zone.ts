import { randomInt } from 'node:crypto'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type DecodedPacket, encode, type RecordType } from 'dns-packet'
import { DNS_NAME } from '../../../crds/parts/acme-settings.ts'
import { codeOf, MooringError } from '../../../shared/errors.ts'
import { type DnsServer, exchange, serverIn, serverName } from './exchange.ts'
import { parsed, rcodeName } from './tsig.ts'

/** Name and zone of the TXT record of a challenge. */
export interface RecordPlace {
  /** Name of the record, after all CNAME records were followed. */
  readonly name: string
  readonly zone: string
}

/** Maximum number of CNAME records that are followed. */
const CNAMES_MAX = 8
const SERVERS_MAX = 16
/** Maximum length of a name as text (RFC 1035, section 2.3.4). */
const NAME_MAX = 253

/** Creates a resolver: its servers are those of `spec.acme.nameservers`, or the machine's. */
export function resolverWith(nameservers: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (nameservers.length > 0) resolver.setServers(nameservers)
  return resolver
}

/** Whether an error of a resolver says that there is no such record. */
const isAbsent = (error: unknown): boolean => ['ENOTFOUND', 'ENODATA'].includes(codeOf(error) ?? '')

async function recordsOf<T>(ask: () => Promise<readonly T[]>, about: string): Promise<readonly T[]> {
  try {
    return await ask()
  } catch (cause) {
    if (isAbsent(cause)) return []
    const why = codeOf(cause) ?? (cause instanceof Error ? cause.message : String(cause))
    throw new MooringError(
      'dns_unreachable',
      `the operator cannot look up ${about} (${why}): check its DNS servers, or set spec.acme.nameservers`,
      {
        cause,
      },
    )
  }
}

const normal = (name: string): string => name.toLowerCase().replace(/\.$/, '')

const isWithin = (name: string, zone: string): boolean => zone === '' || name === zone || name.endsWith(`.${zone}`)

/** Follows CNAME records, with which one zone can delegate the challenge to another. Returns the last name. @throws MooringError */
export async function followed(name: string, resolver: Resolver): Promise<string> {
  let current = normal(name)
  for (let hops = 0; hops < CNAMES_MAX; hops += 1) {
    const [target] = await recordsOf(() => resolver.resolveCname(current), `the CNAME record of ${current}`)
    if (target === undefined) return current
    current = normal(target)
    if (current.length > NAME_MAX || !DNS_NAME.test(current)) {
      throw new MooringError('dns_rejected', `a CNAME record that begins at ${name} leads to an invalid name`)
    }
  }
  throw new MooringError(
    'dns_rejected',
    `the CNAME records that begin at ${name} are more than ${CNAMES_MAX}: they may be a circle`,
  )
}

/** Finds the name and zone of a challenge's record. `about.zone` is the zone of the settings; when undefined, the server is asked. @throws MooringError */
export async function placeOf(
  name: string,
  about: { readonly server: DnsServer; readonly zone: string | undefined; readonly resolver: Resolver },
): Promise<RecordPlace> {
  const target = await followed(name, about.resolver)
  const zone = about.zone === undefined ? await zoneAt(about.server, target) : normal(about.zone)
  if (isWithin(target, zone)) return { name: target, zone }
  const via = target === normal(name) ? '' : `, to which a CNAME record of ${name} leads,`
  throw new MooringError('dns_rejected', `the record ${target}${via} is not in the zone ${zone} of spec.acme.dns.zone`)
}

/** Returns the zone of a name, from the SOA record in the server's response (RFC 2308, section 3). */
async function zoneAt(server: DnsServer, name: string): Promise<string> {
  const { packet, rcode } = await query(server, name, 'SOA')
  const soa = [...(packet.answers ?? []), ...(packet.authorities ?? [])].find(({ type }) => type === 'SOA')
  const zone = soa && normal(soa.name)
  if (packet.flag_aa && zone !== undefined && isWithin(name, zone)) return zone
  const what = rcode === 'NOERROR' || rcode === 'NXDOMAIN' ? 'without authority' : `with ${rcode}`
  const message = `the DNS server ${serverName(server)} has answered ${what} when asked for the zone of ${name}: it must be the primary server of that zone, or spec.acme.dns.zone must name the zone`
  throw new MooringError('dns_rejected', message)
}

interface Queried {
  readonly packet: DecodedPacket
  readonly rcode: string
}

async function query(server: DnsServer, name: string, type: RecordType): Promise<Queried> {
  const response = await exchange(server, encode({ type: 'query', id: randomInt(0x1_0000), questions: [{ name, type }] }))
  return { packet: parsed(response), rcode: rcodeName(response) }
}

/**
 * Asks the authoritative servers of the zone for a TXT record, as a CA does. Returns undefined when all that answer have the record, else a
 * sentence that names a server and its answer. A server that does not answer is ignored, unless none answers. When no NS record of the zone
 * can be resolved, the server of the updates is asked instead.
 */
export async function missingAt(
  { name, zone, value }: RecordPlace & { readonly value: string },
  { server, resolver }: { readonly server: DnsServer; readonly resolver: Resolver },
): Promise<string | undefined> {
  const servers = await authoritative(zone, server, resolver)
  const answers = await Promise.all(servers.map((each) => missingFrom(each, name, value)))
  const absent = answers.find(({ isReached, why }) => isReached && why !== undefined)
  if (absent) return absent.why
  return answers.some(({ isReached }) => isReached) ? undefined : answers[0]?.why
}

interface Missing {
  readonly isReached: boolean
  readonly why: string | undefined
}

async function missingFrom(server: NamedServer, name: string, value: string): Promise<Missing> {
  try {
    const { texts, rcode, title } = await askTxt(server, name)
    if (texts.includes(value)) return { isReached: true, why: undefined }
    const has = rcode === 'NOERROR' ? (texts.length === 0 ? 'no record' : 'other values only') : rcode
    return {
      isReached: true,
      why: `the authoritative DNS server ${title} does not have the TXT record ${name} "${value}" yet: it answers with ${has}`,
    }
  } catch (error) {
    return { isReached: false, why: error instanceof Error ? error.message : String(error) }
  }
}

/** Values of a TXT record, from one server. */
export interface TxtResponse {
  /** Name and address of the server. */
  readonly title: string
  readonly texts: readonly string[]
  /** Response code, such as `NOERROR` or `NXDOMAIN`. */
  readonly rcode: string
}

/** Asks a server for a TXT record. @throws MooringError `dns_unreachable`, `dns_invalid_answer` */
async function askTxt({ title, ...server }: NamedServer, name: string): Promise<TxtResponse> {
  const { packet, rcode } = await query(server, name, 'TXT')
  const texts = (packet.answers ?? []).flatMap((record) => (record.type === 'TXT' ? [textOf(record.data)] : []))
  return { title, texts, rcode }
}

/**
 * Returns the values of a TXT record from each authoritative server that answers, after following CNAME records. When none answers, or none is
 * known, those from the resolver.
 * @throws MooringError `dns_unreachable`, `dns_rejected`
 */
export async function textsAt(name: string, resolver: Resolver): Promise<readonly TxtResponse[]> {
  const target = await followed(name, resolver)
  const servers = await authoritativeFor(target, resolver)
  const answers = await Promise.allSettled(servers.map((server) => askTxt(server, target)))
  const reached = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  if (reached.length > 0) return reached
  const records = await recordsOf(() => resolver.resolveTxt(target), `the TXT record ${target}`)
  return [{ title: 'DNS', texts: records.map((strings) => strings.join('')), rcode: 'NOERROR' }]
}

const textOf = (data: string | Buffer | readonly (string | Buffer)[]): string =>
  [data]
    .flat()
    .map((part) => part.toString())
    .join('')

interface NamedServer extends DnsServer {
  /** Name and address. */
  readonly title: string
}

/** Returns the authoritative servers of a zone by its NS records, at port 53. The server of the updates keeps its own port. */
async function authoritative(zone: string, server: DnsServer, resolver: Resolver): Promise<readonly NamedServer[]> {
  const names = await recordsOf(() => resolver.resolveNs(zone), `the NS records of ${zone}`)
  const own = new Set((await lookup(server.host, { all: true }).catch(() => [])).map(({ address }) => address))
  const servers = await namedServers(names, { resolver, portOf: (address) => (own.has(address) ? server.port : 53) })
  return servers.length > 0 ? servers : [{ ...server, title: serverName(server) }]
}

/**
 * Returns the authoritative servers of the zone of a name: those of the nearest NS records above it, at port 53. A server that is a DNS server of
 * the resolver too keeps its port there. Returns none when NS records cannot be looked up.
 */
async function authoritativeFor(name: string, resolver: Resolver): Promise<readonly NamedServer[]> {
  const ports = new Map(resolver.getServers().map((text) => [hostIn(text), portIn(text)]))
  for (let zone = name; zone.includes('.'); zone = zone.slice(zone.indexOf('.') + 1)) {
    const names = await resolver.resolveNs(zone).catch((error: unknown) => (isAbsent(error) ? [] : undefined))
    if (!names) return []
    // Sorted, so that messages about one of several servers stay the same.
    if (names.length > 0) return namedServers(names.toSorted(), { resolver, portOf: (address) => ports.get(address) ?? 53 })
  }
  return []
}

/** Reads an entry of a resolver: an IP address, or with another port than 53 `address:port`, IPv6 in brackets. */
const hostIn = (text: string): string => (isIP(text) ? text : serverIn(text).host)
const portIn = (text: string): number => (isIP(text) ? 53 : serverIn(text).port)

interface Naming {
  readonly resolver: Resolver
  /** Port of a server, by its address. */
  readonly portOf: (address: string) => number
}

async function namedServers(names: readonly string[], { resolver, portOf }: Naming): Promise<readonly NamedServer[]> {
  const found = await Promise.all(names.slice(0, SERVERS_MAX).map((name) => addressesOf(name, resolver)))
  const servers = found.flat().map(({ name, address }) => {
    const at = { host: address, port: portOf(address) }
    return { ...at, title: `${name} (${serverName(at)})` }
  })
  return servers.slice(0, SERVERS_MAX)
}

async function addressesOf(name: string, resolver: Resolver) {
  const families = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return families.flatMap((family) => (family.status === 'fulfilled' ? family.value : [])).map((address) => ({ name, address }))
}
