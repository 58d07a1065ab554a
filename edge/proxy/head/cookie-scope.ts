const DOMAIN = /;[\t ]*domain[\t ]*(=[^;]*)?(?=;|$)/gi

/**
 * A Set-Cookie value that reaches no further than the tunnel's own host: a `Domain` above it would let one tunnel write the cookies of its neighbours.
 * `host` is in lower case.
 */
export function scopedCookie(value: string, host: string): string {
  return value.replace(DOMAIN, (attribute) => (isWithin(attribute.slice(attribute.indexOf('=') + 1), host) ? attribute : ''))
}

function isWithin(domain: string, host: string): boolean {
  const name = domain.trim().toLowerCase().replace(/^\./, '')
  return name === host || name.endsWith(`.${host}`)
}
