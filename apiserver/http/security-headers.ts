import type { RequestHandler } from 'express'

/** Security headers of every answer. The page `/docs` sets a weaker Content-Security-Policy for itself. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

/**
 * Creates the middleware that sets the security headers. Strict-Transport-Security is left to the proxy of a public installation: on `localhost`
 * it would apply to every other port of the machine.
 */
export function securityHeaders(): RequestHandler {
  return function securityHeaders(_req, res, next) {
    for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value)
    next()
  }
}
