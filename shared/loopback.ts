/**
 * Whether an address or name reaches only this machine, so that no TLS is needed (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3;
 * RFC 6761, section 6.3).
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
