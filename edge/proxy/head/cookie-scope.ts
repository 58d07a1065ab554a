const DOMAIN = /;[\t ]*domain[\t ]*(=[^;]*)?(?=;|$)/gi

/**
 * Returns a Set-Cookie value whose scope is the tunnel's own host at most. A wider `Domain` would let one tunnel set cookies of other
 * tunnels. `host` is in lower case.
 */
export function scopedCookie(value: string, host: string): string {
  return value.replace(DOMAIN, (attribute) => (isWithin(attribute.slice(attribute.indexOf('=') + 1), host) ? attribute : ''))
}

function isWithin(domain: string, host: string): boolean {
  const name = domain.trim().toLowerCase().replace(/^\./, '')
  return name === host || name.endsWith(`.${host}`)
}
