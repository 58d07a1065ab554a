import { isIPv6, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { MooringError } from '../../../shared/errors.ts'

const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::'

/** Host at which Mooring itself dials a server that listens on `listen`. */
export function adminHost(listen: string): string {
  if (!isWildcard(listen)) return listen
  return isIPv6(listen) ? '::1' : '127.0.0.1'
}

/** Host for callers: for a wildcard, the machine's first address that other machines can reach. */
export function callersHost(listen: string): string {
  if (!isWildcard(listen)) return listen
  const family = isIPv6(listen) ? 'IPv6' : 'IPv4'
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.find((at) => !at.internal && at.family === family && !at.address.startsWith('fe80:'))
  return outside?.address ?? adminHost(listen)
}

/** Ports below Linux' range for outgoing connections (32768 and above), which could take a port while its server is down. */
const LOWEST = 20_000
const HIGHEST = 32_000
const ATTEMPTS = 100

/** Whether a server could listen on the port now. */
export async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer()
  server.listen({ host, port, exclusive: true })
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  const closed = once(server, 'close')
  server.close()
  await closed
  return true
}

interface PortDeps {
  readonly host: string
  /** Former port of the server. */
  readonly preferred: number | undefined
  /** Ports of other servers, running or not. */
  readonly reserved: ReadonlySet<number>
}

/** Returns the former port if it is free, otherwise another free one. @throws MooringError `no_free_port` */
export async function choosePort({ host, preferred, reserved }: PortDeps): Promise<number> {
  if (preferred !== undefined && (await isFree(host, preferred))) return preferred
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (!reserved.has(port) && (await isFree(host, port))) return port
  }
  throw new MooringError('no_free_port', `no free port between ${LOWEST} and ${HIGHEST} on ${host}`)
}

/** Ports of a server. */
export interface Ports {
  readonly port: number
  /** Port for the administrator alone, on {@link adminHost}. Absent: there is none. */
  readonly adminPort?: number | undefined
}

interface PortsDeps {
  readonly listen: string
  /** Whether the server has a port for the administrator alone. */
  readonly hasAdminPort: boolean
  /** Former ports of the server. */
  readonly former: Ports | undefined
  /** Ports of other servers, running or not. */
  readonly reserved: ReadonlySet<number>
}

/** Chooses the ports of a server, which keeps its former ones if it can. @throws MooringError `no_free_port` */
export async function choosePorts({ listen, hasAdminPort, former, reserved }: PortsDeps): Promise<Ports> {
  const port = await choosePort({ host: listen, preferred: former?.port, reserved })
  if (!hasAdminPort) return { port }
  const taken = new Set([...reserved, port])
  return { port, adminPort: await choosePort({ host: adminHost(listen), preferred: former?.adminPort, reserved: taken }) }
}
