import { type Response, Router } from 'express'
import swaggerUiPath from 'swagger-ui-dist/absolute-path.js'
import { DOCS_PAGE, DOCS_POLICY, DOCS_SCRIPT } from './docs-page.ts'
import { onlyGet } from '../http/only-get.ts'
import type { JsonObject } from './openapi-schemas.ts'

/** Files of Swagger UI that the page loads. */
const FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']

/** Creates the router of `/openapi.json` and `/docs`, open to every caller. `document` returns the current document of the listener. */
export function createDocsRouter(document: () => JsonObject): Router {
  const router = Router({ caseSensitive: true, strict: true })
  const root = swaggerUiPath()
  const get = (path: string, answer: (res: Response) => void) =>
    router
      .route(path)
      .get((_req, res) => answer(res))
      .all(onlyGet)

  get('/openapi.json', (res) => void res.type('application/json').send(JSON.stringify(document())))
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
