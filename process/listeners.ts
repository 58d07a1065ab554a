import { type Server, type Socket, isIPv4 } from 'node:net'
import { MooringError } from '../shared/errors.ts'

/** Address of a listener. `flag` is the setting to change when the port is in use, e.g. `--shared-port`. */
export interface ListenAddress {
  readonly address: string
  readonly port: number
  readonly flag: string
}

/**
 * Converts an error of `listen` into a sentence: MooringError `port_in_use`, `port_forbidden` or `address_unavailable`. Other errors are
 * returned unchanged.
 */
export function bindError(cause: NodeJS.ErrnoException, { address, port, flag }: ListenAddress): Error {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new MooringError('port_in_use', `port ${port} on ${address} is in use: choose another with ${flag}`, { cause })
    case 'EACCES':
      return new MooringError('port_forbidden', `no permission to use port ${port}: choose another with ${flag}`, { cause })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new MooringError('address_unavailable', `${address} is not an address of this machine`, { cause })
    default:
      return cause
  }
}

/**
 * Returns a function that closes `server`: it accepts no more connections, and after the deadline destroys those that are still open. That
 * includes connections in a TLS handshake, which `closeAllConnections` does not know. Resolves when no connection is open. Call `closerOf`
 * before the server listens.
 */
export function closerOf(server: Server): (deadlineMs: number) => Promise<void> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return async (deadlineMs) => {
    if (!server.listening) return
    const deadline = setTimeout(() => sockets.forEach((socket) => socket.destroy()), deadlineMs)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(deadline)
  }
}

/** Whether an address is a loopback address: 127.0.0.0/8 (RFC 1122, section 3.2.1.3) or ::1 (RFC 4291, section 2.5.3). */
export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || (isIPv4(address) && address.startsWith('127.'))

/**
 * Whether a listener of plain HTTP on loopback answers a request with this `Host`: `localhost`, a loopback address or one of `publicNames`,
 * with or without a port. This protects against DNS rebinding: when the name of a web page changes to resolve to 127.0.0.1, the browser
 * treats page and listener as the same origin, and only `Host` still distinguishes them. Other subdomains of `localhost` are rejected, because tunnels
 * use them. A request without `Host` is allowed: browsers always send one.
 */
export function isLoopbackHost(host: string | undefined, publicNames: readonly string[] = []): boolean {
  if (host === undefined) return true
  const name = nameOf(host)
  if (name === undefined) return false
  return name === 'localhost' || isLoopbackAddress(name) || publicNames.some((known) => known.toLowerCase() === name)
}

/** Returns the name in a Host header such as `localhost`, `127.0.0.1:8080` or `[::1]:8080`: in lower case, without the port. */
function nameOf(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]]+))(?::\d{0,5})?$/.exec(host) ?? []
  return (bracketed ?? plain)?.toLowerCase()
}

/** Host values that a rejection may quote. */
const QUOTABLE = /^[\w.:[\]-]{1,255}$/

/** Returns the sentence for a request that a listener on loopback rejects. */
export function wrongHost(host: string): string {
  const what = QUOTABLE.test(host) ? host : 'this Host'
  return `${what} is not a name of this listener, which serves only this machine: use localhost, 127.0.0.1 or [::1]`
}
