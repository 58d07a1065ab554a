import { readFile } from 'node:fs/promises'
import { Resolver } from 'node:dns/promises'
import { MooringError } from '../../shared/errors.ts'
import { isLocalName } from '../../shared/outside-addresses.ts'

/** Returns the addresses of a host name, at least one. @throws MooringError `unresolved` */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>

export interface ResolverDeps {
  /** DNS servers as `address` or `address:port`; default: those of the system. */
  readonly servers?: readonly string[] | undefined
  /** File of host names that need no DNS; default: `/etc/hosts`. */
  readonly hosts?: string
}

/** Maximum time of one DNS question in milliseconds. A question without an answer is asked twice. */
const QUESTION_MS = 2_500
const HOSTS = '/etc/hosts'

/**
 * Creates the resolver of receivers. It asks DNS directly, because `dns.lookup` occupies one of the few threads that the whole process shares, for as
 * long as the slowest DNS server of any tenant takes. Search domains therefore do not apply: names must be complete.
 */
export function createResolver({ servers, hosts = HOSTS }: ResolverDeps = {}): Resolve {
  async function ask(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const resolver = new Resolver({ timeout: QUESTION_MS, tries: 2 })
    if (servers) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel)
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  return async function resolve(hostname, signal) {
    if (isLocalName(hostname)) return ['127.0.0.1', '::1']
    const known = addressesIn(await textOf(hosts), hostname)
    const addresses = known.length > 0 ? known : await ask(hostname, signal)
    if (addresses.length === 0) throw new MooringError('unresolved', 'the host name cannot be resolved')
    return addresses
  }
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}

/** Returns the addresses of a name in a hosts file (hosts(5)). Pure. */
export function addressesIn(hosts: string, hostname: string): readonly string[] {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    return names.some((each) => each.toLowerCase() === name) ? [address] : []
  })
}
