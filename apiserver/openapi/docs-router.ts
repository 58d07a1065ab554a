import { type Response, Router } from 'express'
import swaggerUiPath from 'swagger-ui-dist/absolute-path.js'
import { onlyGet } from '../http/default-responses.ts'
import type { ServedDocument } from './served-document.ts'

/** Files of Swagger UI that the page loads. */
const FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']

/** Creates the router of `/openapi.json` and `/docs`, open to every caller. `document` returns the current document of the listener. */
export function createDocsRouter(document: () => ServedDocument): Router {
  const router = Router({ caseSensitive: true, strict: true })
  const root = swaggerUiPath()
  const get = (path: string, answer: (res: Response) => void) =>
    router
      .route(path)
      .get((_req, res) => answer(res))
      .all(onlyGet)

  get('/openapi.json', (res) => {
    const { text, etag } = document()
    // Express responds with 304 when the request has this tag in If-None-Match. A cache must ask each time: an upgrade changes the document.
    res.set({ ETag: etag, 'Cache-Control': 'no-cache' }).type('application/json').send(text)
  })
  for (const path of ['/docs', '/docs/']) {
    get(path, (res) => void res.setHeader('Content-Security-Policy', DOCS_POLICY).type('html').send(DOCS_PAGE))
  }
  get('/docs/start.js', (res) => void res.type('text/javascript').send(DOCS_SCRIPT))
  for (const file of FILES) {
    get(`/docs/${file}`, (res) => {
      res.setHeader('Cache-Control', 'public, max-age=3600')
      res.sendFile(file, { root, cacheControl: false })
    })
  }
  return router
}

/** Page at `/docs`, without inline scripts and without resources of other origins. */
export const DOCS_PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Mooring API</title>
    <link rel="icon" href="/docs/favicon-32x32.png">
    <link rel="stylesheet" href="/docs/swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <noscript>This page needs JavaScript; the document itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`

/** Script of the page. Without `validatorUrl: null` the page would send the document's address to an external validator. */
export const DOCS_SCRIPT = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
})
`

/** Content-Security-Policy of the page: scripts only from this origin; inline styles, because Swagger UI sets them. */
export const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
