import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDashboardClient, type DashboardClient, expectRejection } from '../support/api/dashboard-client.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { regionId, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** The dashboard by plain HTTP: its pages, its session, and who may use it. What a browser makes of it is in test/dashboard/. */

const deployment = openDeployment()
const cleanup = new DisposableStack()
const { sharedUrl: url, ca } = deployment.installation
let acme: Tenant
let tunnels: string
beforeAll(async () => {
  acme = await deployment.namespace()
  tunnels = `/dashboard${acme.path}/tunnels`
})
afterAll(async () => {
  cleanup.dispose()
  await deployment[Symbol.asyncDispose]()
})

const newPage = () => cleanup.use(createDashboardClient({ url, ca }))

async function signedIn(role: 'viewer' | 'editor' = 'editor'): Promise<DashboardClient> {
  const page = newPage()
  expect((await page.signIn({ token: await acme.token(role) })).status).toBe(201)
  return page
}

describe('the page', () => {
  test('has a strict policy and cannot be framed', async () => {
    const { status, headers, text } = await deployment.page('/dashboard')
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/)
    expect(policy).not.toMatch(/unsafe|data:|https?:|\*/)
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(text).not.toMatch(/<script>|https?:/)
  })

  test('loads its files, compressed and cacheable', async () => {
    const { text } = await deployment.page('/dashboard')
    const links = [...text.matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g)].map(([, link]) => link ?? '')
    expect(links).toHaveLength(3)
    for (const link of links) {
      const file = await deployment.page(link, { headers: { 'Accept-Encoding': 'gzip' } })
      expect(file.status, link).toBe(200)
      expect(file.headers).toMatchObject({
        'content-encoding': 'gzip',
        // The icon has no hash of its content in its name.
        'cache-control': link.endsWith('.svg') ? 'no-cache' : (expect.stringContaining('immutable') as string),
      })
    }
  })

  test('is the same at each of its paths; other paths are unknown', async () => {
    const { text } = await deployment.page('/dashboard')
    for (const path of ['/dashboard/', '/dashboard/o/acme/prod/tunnels/0123456789abcdef/requests']) {
      expect((await deployment.page(path)).text).toBe(text)
    }
    for (const path of ['/dashboard/x', '/dashboard/assets/x.js', '/dashboard/assets/..%2findex.html', '/dashboard/api']) {
      expect((await deployment.page(path)).status, path).toBe(404)
    }
    expect((await deployment.page('/dashboard', { on: 'dedicated' })).status).toBe(404)
    expect((await deployment.page('/dashboard', { method: 'POST' })).status).toBe(405)
  })
})

describe('a session', () => {
  test('begins with a valid token, in a cookie of this host alone that no script can read', async () => {
    const page = newPage()
    const token = await acme.token('viewer')
    const answer = await page.signIn({ token })
    expect(answer.status).toBe(201)
    expect(answer.text).not.toContain(token)
    expect(page.setCookie).toMatch(/^__Host-mooring-session=[\w.-]+; Path=\/; HttpOnly; Secure; SameSite=Strict; Max-Age=\d+$/)
    expect(page.setCookie).not.toContain(token)
    const me = await page.send('GET', '/dashboard/v1/me')
    expect(JSON.parse(me.text)).toMatchObject({
      data: { namespaces: [{ organization: acme.organization, namespace: 'prod', role: 'viewer' }] },
    })
  })

  test('begins with an API token, and ends with its deletion', async () => {
    const admin = acme.as('admin')
    const made = await admin('POST', `${acme.path}/api-tokens`, { body: { name: 'page', role: 'editor' } })
    const { id, token } = made.body.data.apiToken
    const page = newPage()
    expect((await page.signIn({ token })).status).toBe(201)
    expect((await page.send('GET', tunnels)).status).toBe(200)
    await admin('DELETE', `${acme.path}/api-tokens/${id}`)
    expectRejection(await page.send('GET', tunnels), '401 unauthenticated')
  })

  test('creates and deletes with the rights of its token', async () => {
    const page = await signedIn('editor')
    const body = { name: 'web', regionId: await regionId(deployment.call) }
    const made = await page.send('POST', tunnels, { body })
    expect(made.status).toBe(201)
    const { data } = JSON.parse(made.text) as { data: { tunnel: { id: string } } }
    expect((await page.send('DELETE', `${tunnels}/${data.tunnel.id}`)).status).toBe(200)
    const viewer = await signedIn('viewer')
    const other = await acme.tunnel()
    expectRejection(await viewer.send('DELETE', `${tunnels}/${other.id}`), '403 forbidden')
  })

  test('reaches the routes of the dedicated listener, which stay unknown to tokens on the shared one', async () => {
    const page = await signedIn('viewer')
    const path = '/v1/databases/create/metadata'
    expect((await page.send('GET', `/dashboard${path}`)).status).toBe(200)
    expectRejection(await page.send('POST', `/dashboard${path}`, { headers: { Origin: undefined } }), '403 forbidden')
    expectRejection(await page.send('POST', `/dashboard${path}`), '405 method_not_allowed')
    const Authorization = `Bearer ${await acme.token('admin')}`
    expectRejection(await page.send('GET', path, { headers: { Authorization } }), '404 not_found')
  })

  test('ends by signing out, also for a copy of its cookie', async () => {
    const page = await signedIn()
    const copy = cleanup.use(createDashboardClient({ url, ca, cookie: page.setCookie }))
    expect((await copy.send('GET', tunnels)).status).toBe(200)
    expect((await page.send('DELETE', '/dashboard/session')).status).toBe(200)
    expect(page.setCookie).toContain('Max-Age=0')
    expectRejection(await page.send('GET', tunnels), '401 unauthenticated')
    // Another replica learns of it within two seconds.
    await expect.poll(async () => (await copy.send('GET', tunnels)).status, LATER).toBe(401)
  })

  test.each([
    ['a forged token', { token: 'a.b.c' }, '401 unauthenticated'],
    ['an unknown code', { code: 'abc' }, '401 unauthenticated'],
    ['neither', {}, '400 invalid_request'],
    ['both', { token: 'a.b.c', code: 'abc' }, '400 invalid_request'],
    ['an unknown field', { token: 'a.b.c', next: 'https://evil.example' }, '400 invalid_request'],
    ['a token of 9 KB', { token: 'a'.repeat(9_000) }, '400 invalid_request'],
  ])('does not begin with %s', async (_with, body, code) => {
    const page = newPage()
    const answer = await page.signIn(body)
    expectRejection(answer, code)
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  test('is not the one that was planted before signing in', async () => {
    const page = cleanup.use(createDashboardClient({ url, ca, cookie: (await signedIn()).setCookie }))
    await page.signIn({ token: await acme.token('viewer') })
    // The planted session is that of an editor.
    const { data } = JSON.parse((await page.send('GET', '/dashboard/v1/me')).text) as { data: { namespaces: { role: string }[] } }
    expect(data.namespaces.map(({ role }) => role)).toEqual(['viewer'])
  })
})

describe('another site', () => {
  const FOREIGN = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }

  test.each([
    ['a foreign Origin', { Origin: 'https://evil.example', 'Sec-Fetch-Site': undefined }],
    ['another port of this host', { Origin: `${url.replace(/:\d+$/, '')}:1`, 'Sec-Fetch-Site': 'same-site' }],
    ['no Origin', { Origin: undefined }],
    ['an opaque Origin', { Origin: 'null' }],
    ['Sec-Fetch-Site: cross-site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['plain HTTP', { Origin: url.replace('https:', 'http:') }],
  ])('with %s changes nothing with the cookie, and begins or ends no session', async (_with, headers) => {
    const page = await signedIn()
    const { id } = await acme.tunnel()
    const foreign = { headers, body: {} }
    expectRejection(await page.send('DELETE', `${tunnels}/${id}`, { headers }), '403 forbidden')
    expectRejection(await page.send('POST', `${tunnels}/${id}/passwords`, { headers }), '403 forbidden')
    expectRejection(await page.send('PATCH', `${tunnels}/${id}`, foreign), '403 forbidden')
    expectRejection(await page.send('POST', '/dashboard/session', { headers, body: { token: 'a.b.c' } }), '403 forbidden')
    expectRejection(await page.send('DELETE', '/dashboard/session', { headers }), '403 forbidden')
    expect((await page.send('GET', `${tunnels}/${id}`)).status).toBe(200)
  })

  test('reads nothing with the cookie', async () => {
    const page = await signedIn()
    const answer = await page.send('GET', tunnels, { headers: FOREIGN })
    expectRejection(answer, '403 forbidden')
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin')
  })

  test('the API itself ignores the cookie, and the dashboard’s path ignores a token', async () => {
    const page = await signedIn()
    expectRejection(await page.send('GET', '/v1/me'), '401 unauthenticated')
    expectRejection(await page.send('POST', `${acme.path}/tunnels`, { body: {} }), '401 unauthenticated')
    const Authorization = `Bearer ${await acme.token('admin')}`
    expectRejection(await newPage().send('GET', '/dashboard/v1/me', { headers: { Authorization } }), '401 unauthenticated')
  })

  test('nothing but the API is behind the dashboard’s path', async () => {
    const page = await signedIn()
    for (const path of ['/dashboard/docs', '/dashboard/healthz', '/dashboard/v1', '/dashboard//v1/me', '/dashboard/v1x/me']) {
      expect((await page.send('GET', path)).status, path).toBe(404)
    }
  })
})

test('neither tokens nor cookies get into a log', async () => {
  const page = newPage()
  const token = await acme.token('editor')
  await page.signIn({ token })
  await page.send('GET', tunnels)
  const [, signature = ''] = /\.([\w-]{40,})$/.exec(token) ?? []
  const logs = await Promise.all(deployment.installation.logFiles.map((file) => readFile(file, 'utf8')))
  for (const secret of [signature, page.setCookie.replace(/;.*/, '').slice(-60)]) {
    expect(secret.length).toBeGreaterThan(30)
    expect(logs.filter((log) => log.includes(secret))).toEqual([])
  }
})
