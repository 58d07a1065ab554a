import type { RequestHandler } from 'express'

/** Answers are data for their caller alone. A page of its own (`/docs`) loosens the policy for itself. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

/**
 * Security headers on every answer. Strict-Transport-Security is left to what stands before a public installation: on
 * `localhost` it would bind every other port of the machine too.
 */
export function securityHeaders(): RequestHandler {
  return function securityHeaders(_req, res, next) {
    for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value)
    next()
  }
}
