import { type RequestHandler, Router } from 'express'
import type { TokenIssuer } from './auth/issuer.ts'
import { onlyGet } from './http/default-responses.ts'

export interface OpenRoutesDeps {
  /** Mooring's own issuer; its documents are published when present. */
  readonly issuer?: Pick<TokenIssuer, 'jwks' | 'discovery'> | undefined
  /** Whether requests can be served. */
  readonly isReady: () => boolean
}

/** Creates the routes without authentication: `/healthz`, `/readyz` and the issuer's discovery documents. */
export function createOpenRoutes({ issuer, isReady }: OpenRoutesDeps): Router {
  const router = Router({ caseSensitive: true, strict: true })
  const get = (path: string, handler: RequestHandler) => router.route(path).get(handler).all(onlyGet)
  get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  get('/readyz', (_req, res) => {
    const ready = isReady()
    if (!ready) res.setHeader('Retry-After', '1')
    res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'starting' })
  })
  if (issuer) {
    get('/.well-known/jwks.json', (_req, res) => void res.type('application/jwk-set+json').send(JSON.stringify(issuer.jwks)))
    get('/.well-known/openid-configuration', (_req, res) => void res.json(issuer.discovery))
  }
  return router
}
