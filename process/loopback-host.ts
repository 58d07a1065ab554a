import { isIPv4 } from 'node:net'

/**
 * Protection of plain-HTTP listeners on loopback against DNS rebinding. When the name of a web page changes to resolve to 127.0.0.1, the
 * browser treats page and listener as the same origin. Only the `Host` header still distinguishes them.
 */

/** Returns the name in a Host header such as `localhost`, `127.0.0.1:8080` or `[::1]:8080`: in lower case, without the port. */
function nameOf(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]]+))(?::\d{0,5})?$/.exec(host) ?? []
  return (bracketed ?? plain)?.toLowerCase()
}

/** Whether an address is a loopback address: 127.0.0.0/8 (RFC 1122, section 3.2.1.3) or ::1 (RFC 4291, section 2.5.3). */
export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || (isIPv4(address) && address.startsWith('127.'))

/**
 * Whether a listener on loopback answers a request with this `Host`: `localhost`, a loopback address or one of `publicNames`, with or without
 * a port. Subdomains of `localhost` are rejected, because tunnels use them. A request without `Host` is allowed: browsers always send one.
 */
export function isLoopbackHost(host: string | undefined, publicNames: readonly string[] = []): boolean {
  if (host === undefined) return true
  const name = nameOf(host)
  if (name === undefined) return false
  return name === 'localhost' || isLoopbackAddress(name) || publicNames.some((known) => known.toLowerCase() === name)
}

/** Host values that a rejection may quote. */
const QUOTABLE = /^[\w.:[\]-]{1,255}$/

/** Returns the sentence for a request that a listener on loopback rejects. */
export function wrongHost(host: string): string {
  const what = QUOTABLE.test(host) ? host : 'this Host'
  return `${what} is not a name of this listener, which serves only this machine: use localhost, 127.0.0.1 or [::1]`
}
