import { isIPv4 } from 'node:net'

/**
 * Protection of plain-HTTP listeners on loopback against DNS rebinding: a web page whose name suddenly resolves to 127.0.0.1 is of the same
 * origin as the listener for the browser, and only its `Host` still tells the two apart.
 */

/** `localhost`, `127.0.0.1:8080`, `[::1]:8080`; the name in lower case, the port dropped. Undefined for any other form. */
function nameOf(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]]+))(?::\d{0,5})?$/.exec(host) ?? []
  return (bracketed ?? plain)?.toLowerCase()
}

/** Whether an address is one that only this machine reaches: 127.0.0.0/8 (RFC 1122, section 3.2.1.3) or ::1 (RFC 4291, section 2.5.3). */
export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || (isIPv4(address) && address.startsWith('127.'))

/**
 * Whether a listener on loopback answers a request with this `Host`: `localhost`, a loopback address or one of `publicNames`, with or without
 * a port. Names below `localhost` are refused: tunnels of other tenants have such names. A request without `Host` is not one of a browser.
 */
export function isLoopbackHost(host: string | undefined, publicNames: readonly string[] = []): boolean {
  if (host === undefined) return true
  const name = nameOf(host)
  if (name === undefined) return false
  return name === 'localhost' || isLoopbackAddress(name) || publicNames.some((known) => known.toLowerCase() === name)
}

/** Characters that a refusal may quote. */
const QUOTABLE = /^[\w.:[\]-]{1,255}$/

/** Why a listener on loopback refuses a request, as a sentence. */
export function wrongHost(host: string): string {
  const what = QUOTABLE.test(host) ? host : 'this Host'
  return `${what} is not a name of this listener, which is for this machine alone: use localhost, 127.0.0.1 or [::1]`
}
