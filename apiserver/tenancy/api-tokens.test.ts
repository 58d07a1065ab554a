import { describe, expect, test } from 'vitest'
import { API_TOKEN_LIFE_MS, ApiToken } from '../../crds/api-token.ts'
import { type Answer, codeOf, fieldsOf } from '../../test/support/api/http-app.ts'
import { serveAcme } from '../../test/support/api/tenancy-app.ts'
import { isApiToken } from '../auth/api-token.ts'

type App = Awaited<ReturnType<typeof serveAcme>>
const token = 'root'
const NAMESPACE = '/v1/organizations/acme/namespaces/prod'
interface TokenView {
  readonly id: string
  readonly token?: string
  readonly expiresAt: string
}
const tokenView = (answer: Answer) => (answer.body.data as { apiToken: TokenView }).apiToken

describe('API tokens', () => {
  const post = (app: App, body: object, options: { token?: string; key?: string } = {}) =>
    app.call('POST', `${NAMESPACE}/api-tokens`, {
      token: options.token ?? 'admin',
      body,
      ...(options.key === undefined ? {} : { headers: { 'idempotency-key': options.key } }),
    })
  const ci = { name: 'ci', role: 'editor' }

  test('work at once, are shown once, and end at once', async () => {
    await using app = await serveAcme()
    const created = await post(app, ci)
    const { id, token: secret = '', expiresAt } = tokenView(created)
    expect(isApiToken(secret)).toBe(true)
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(89 * 86_400_000)
    const me = await app.call('GET', '/v1/me', { token: secret })
    expect(me.body.data).toEqual({
      user: `mooring:api-token:${id}`,
      groups: ['mooring:acme--prod:editor'],
      namespaces: [{ organization: 'acme', namespace: 'prod', role: 'editor' }],
    })
    const listed = await app.call('GET', `${NAMESPACE}/api-tokens`, { token: 'viewer' })
    expect(listed.body.data).toMatchObject({ apiTokens: [{ id, name: 'ci', role: 'editor' }] })
    expect(JSON.stringify([listed.body, await app.store.list(ApiToken)])).not.toContain(secret)
    expect(codeOf(await app.call('DELETE', `${NAMESPACE}/api-tokens/${id}`, { token: 'admin' }))).toBe('200 OK')
    expect(codeOf(await app.call('GET', '/v1/me', { token: secret }))).toBe('401 unauthenticated')
    expect(codeOf(await app.call('DELETE', `${NAMESPACE}/api-tokens/${id}`, { token: 'admin' }))).toBe('404 not_found')
  })

  test('have the same ETag on creation and on GET, and are revoked only at that version', async () => {
    await using app = await serveAcme()
    const created = await post(app, ci)
    const { token: secret, ...view } = tokenView(created)
    expect(secret).toBeDefined()
    const path = `${NAMESPACE}/api-tokens/${view.id}`
    const read = await app.call('GET', path, { token: 'viewer' })
    expect([codeOf(read), read.body.data]).toEqual(['200 OK', { apiToken: view }])
    const etag = read.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"\d+"$/)
    expect(created.headers.get('etag')).toBe(etag)
    const revoke = (version: string) => app.call('DELETE', path, { token: 'admin', headers: { 'if-match': version } })
    expect(codeOf(await revoke('"1"'))).toBe('409 conflict')
    expect(codeOf(await revoke(etag))).toBe('200 OK')
    expect(codeOf(await app.call('GET', path, { token: 'viewer' }))).toBe('404 not_found')
    expect(codeOf(await app.call('GET', `${NAMESPACE}/api-tokens/x`, { token: 'viewer' }))).toBe('404 not_found')
    expect(codeOf(await app.call('GET', path, { token: 'eve' }))).toBe('404 not_found')
  })

  test('may expire at a time of any zone, which is shown in UTC', async () => {
    await using app = await serveAcme()
    const year = new Date().getUTCFullYear()
    const month = new Date(Date.UTC(year, new Date().getUTCMonth() + 2, 1)).toISOString().slice(0, 8)
    const answer = await post(app, { ...ci, expiresAt: `${month}02T00:30:00+02:00` })
    expect([codeOf(answer), tokenView(answer).expiresAt]).toEqual(['201 OK', `${month}01T22:30:00.000Z`])
  })

  test('are returned again with the same Idempotency-Key', async () => {
    await using app = await serveAcme()
    const first = await post(app, ci, { key: 'k1' })
    const again = await post(app, ci, { key: 'k1' })
    expect(again.body).toEqual(first.body)
    expect(codeOf(await app.call('GET', '/v1/me', { token: tokenView(again).token }))).toBe('200 OK')
    expect(codeOf(await post(app, { ...ci, role: 'viewer' }, { key: 'k1' }))).toBe('422 idempotency_key_reused')
    expect(tokenView(await post(app, ci, { key: 'k1', token: 'root' })).id).not.toBe(tokenView(first).id)
    const atOnce = await Promise.all([1, 2, 3].map(() => post(app, ci, { key: 'k2' })))
    expect(new Set(atOnce.map((answer) => tokenView(answer).token)).size).toBe(1)
  })

  test('with a changed character are invalid, and expired ones are reported as expired', async () => {
    let time = new Date()
    await using app = await serveAcme({ now: () => time })
    const { token: secret = '' } = tokenView(await post(app, ci))
    const changed = secret.slice(0, -1) + (secret.endsWith('a') ? 'b' : 'a')
    expect(codeOf(await app.call('GET', '/v1/me', { token: changed }))).toBe('401 unauthenticated')
    time = new Date(Date.now() - 3 * 86_400_000)
    const past = await post(app, { ...ci, expiresAt: new Date(Date.now() - 86_400_000).toISOString() })
    const answer = await app.call('GET', '/v1/me', { token: tokenView(past).token })
    expect(answer.body.msg).toBe('the token has expired')
  })

  test('created by kubectl for several years expire after one', async () => {
    await using app = await serveAcme()
    const key = { namespace: 'acme--prod', name: 'by-kubectl' }
    const spec = { displayName: 'ci', role: 'viewer', expiresAt: '2099-01-01T00:00:00Z', sha256: '0'.repeat(64) } as const
    const { metadata } = await app.store.create(ApiToken, { metadata: key, spec })
    await app.apiTokens.waitFor(key, (found) => found, AbortSignal.timeout(60_000))
    const path = `${NAMESPACE}/api-tokens`
    const [one, all] = [
      await app.call('GET', `${path}/${metadata.uid}`, { token: 'viewer' }),
      await app.call('GET', path, { token }),
    ]
    const expiresAt = new Date(Date.parse(metadata.creationTimestamp) + API_TOKEN_LIFE_MS).toISOString()
    expect(one.body.data).toMatchObject({ apiToken: { expiresAt } })
    expect(all.body.data).toMatchObject({ apiTokens: [{ expiresAt }] })
  })

  test.each([{ expiresAt: '2020-01-01T00:00:00Z' }, { expiresAt: '2999-01-01T00:00:00Z' }, { expiresAt: 'tomorrow' }])(
    'may not expire at $expiresAt',
    async ({ expiresAt }) => {
      await using app = await serveAcme()
      const answer = await post(app, { ...ci, expiresAt })
      expect(codeOf(answer)).toBe('400 invalid_request')
      expect(fieldsOf(answer)).toEqual(['expiresAt'])
    },
  )

  test('are at most 20 in a namespace, also with simultaneous requests', async () => {
    await using app = await serveAcme()
    const answers = await Promise.all(Array.from({ length: 25 }, () => post(app, ci)))
    expect(answers.map(codeOf).filter((code) => code === '201 OK')).toHaveLength(20)
    expect(answers.map(codeOf).filter((code) => code === '403 quota_exceeded')).toHaveLength(5)
  })

  test.each([
    { who: 'viewer', code: '403 forbidden' },
    { who: 'editor', code: '403 forbidden' },
    { who: 'eve', code: '404 not_found' },
  ])('are not for $who to make', async ({ who, code }) => {
    await using app = await serveAcme()
    expect(codeOf(await post(app, ci, { token: who }))).toBe(code)
  })

  test('are visible only in their namespace', async () => {
    await using app = await serveAcme()
    await app.call('POST', '/v1/organizations/acme/namespaces', { token, body: { slug: 'test', name: 'Test' } })
    const { id, token: secret } = tokenView(await post(app, { name: 'ci', role: 'admin' }))
    const other = '/v1/organizations/acme/namespaces/test'
    expect(codeOf(await app.call('GET', `${other}/members`, { token: secret }))).toBe('404 not_found')
    expect(codeOf(await app.call('DELETE', `${other}/api-tokens/${id}`, { token }))).toBe('404 not_found')
  })
})
