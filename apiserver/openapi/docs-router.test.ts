import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, test } from 'vitest'
import { createDocsRouter } from './docs-router.ts'

async function serveDocs() {
  const server = express()
    .use(createDocsRouter(() => ({ text: '{"openapi":"3.1.0"}', etag: '"7"' })))
    .listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  async function close() {
    const closed = new Promise((resolve) => server.once('close', resolve))
    server.close()
    // Clients keep their connections open and do not read every file to its end.
    server.closeAllConnections()
    await closed
  }
  return { url, [Symbol.asyncDispose]: close }
}

test('the page loads only files of this server', async () => {
  await using docs = await serveDocs()
  const page = await fetch(`${docs.url}/docs`)
  expect(page.headers.get('Content-Security-Policy')).toContain("script-src 'self'")
  const html = await page.text()
  expect(html).not.toMatch(/<script>|https?:/)
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link ?? '')
  expect(links).toHaveLength(5)
  for (const link of links) expect((await fetch(docs.url + link)).status, link).toBe(200)
})

test('the document is served as JSON', async () => {
  await using docs = await serveDocs()
  const answer = await fetch(`${docs.url}/openapi.json`)
  expect(answer.headers.get('Content-Type')).toContain('application/json')
  expect(await answer.json()).toEqual({ openapi: '3.1.0' })
})

test('a caller that has the document gets 304 without it', async () => {
  await using docs = await serveDocs()
  const { headers } = await fetch(`${docs.url}/openapi.json`)
  expect([headers.get('ETag'), headers.get('Cache-Control')]).toEqual(['"7"', 'no-cache'])
  // With a Cache-Control of its own `fetch` sends none, which would ask for the whole document.
  const conditional = (tag: string) =>
    fetch(`${docs.url}/openapi.json`, { headers: { 'If-None-Match': tag, 'Cache-Control': 'max-age=0' } })
  const same = await conditional('"7"')
  expect([same.status, await same.text()]).toEqual([304, ''])
  expect((await conditional('"6"')).status).toBe(200)
})

test('other files of the package are not served', async () => {
  await using docs = await serveDocs()
  for (const path of ['/docs/package.json', '/docs/index.html', '/docs/..%2fpackage.json', '/docs/swagger-ui.js']) {
    expect((await fetch(docs.url + path)).status, path).toBe(404)
  }
})
