import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Instance } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { documentedMetrics } from '../support/documented-metrics.ts'
import { login, query } from '../support/postgresql/sql.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

const deployment = openDeployment()
let acme: Tenant
let instance: Instance
/** Secrets that must not appear in metrics or logs. */
const secrets: string[] = []
let lastRequest = ''

beforeAll(async () => {
  acme = await deployment.namespace()
  const editor = acme.as('editor')
  instance = await acme.instance({ identifier: 'observed' })
  secrets.push(instance.password)
  secrets.push((await acme.instance({ identifier: 'copied', template: instance.id })).password)
  secrets.push((await expectSuccess(editor('POST', `/v1/instances/${instance.id}/password`))).body.data.instance.password)
  await expectSuccess(editor('POST', `/v1/instances/${instance.id}/reset`))
  const { token } = (
    await expectSuccess(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body: { name: 'x', role: 'editor' } }))
  ).body.data.apiToken
  secrets.push(token)
  await deployment.call('GET', '/v1/me', { token })
  const refused = await deployment.tokens.sign({ ...deployment.tokens.claims({ subject: 'ada' }), aud: 'another' })
  secrets.push(refused)
  await deployment.call('GET', '/v1/me', { token: refused })
  await deployment.call('GET', `/v1/nothing/${acme.organization}?token=${token}`)
  await editor('POST', '/v1/instances', { body: deployment.instanceBody({ ttl: secrets[0] }) })
  await expect(login({ ...instance, password: 'a-wrong-password' })).rejects.toThrow()
  secrets.push('a-wrong-password')
  lastRequest = String(
    (await editor('GET', '/v1/me', { headers: { 'X-Request-Id': crypto.randomUUID() } })).headers['x-request-id'],
  )
})
afterAll(() => deployment[Symbol.asyncDispose]())

describe('the metrics', () => {
  const scrape = async () =>
    (await Promise.all(deployment.installation.metricsUrls.map(async (url) => (await fetch(url)).text()))).join('\n')
  const familiesOf = (text: string) =>
    [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = '', type = '']) => ({ name, type }))

  test.each([
    ['mooring_http_requests_total', 'counter'],
    ['mooring_http_request_duration_seconds', 'histogram'],
    ['mooring_auth_failures_total', 'counter'],
    ['mooring_instance_claim_duration_seconds', 'histogram'],
    ['mooring_instances', 'gauge'],
    ['mooring_pool_databases', 'gauge'],
    ['mooring_reconcile_total', 'counter'],
    ['mooring_reconcile_duration_seconds', 'histogram'],
    ['mooring_queue_depth', 'gauge'],
    ['mooring_event_loop_delay_seconds', 'gauge'],
    ['mooring_build_info', 'gauge'],
    ['process_cpu_seconds_total', 'counter'],
    ['process_resident_memory_bytes', 'gauge'],
    ['process_start_time_seconds', 'gauge'],
    ['process_open_fds', 'gauge'],
    ['process_max_fds', 'gauge'],
  ])('have %s, a %s with a value', async (name, type) => {
    const text = await scrape()
    expect(familiesOf(text)).toContainEqual({ name, type })
    expect(text).toMatch(new RegExp(`^${name}(_count)?(\\{[^}]*\\})? \\d`, 'm'))
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\w`, 'm'))
  })

  test('are those of docs/metrics.md', async () => {
    const text = await scrape()
    const documented = await documentedMetrics()
    const helps = new Map([...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = '', help = '']) => [name, help]))
    const ours = familiesOf(text).filter(({ name }) => name.startsWith('mooring_'))
    for (const { name, type } of ours) expect(documented).toContainEqual({ name, type, help: helps.get(name) })
  })

  test('have names that follow the Prometheus conventions', async () => {
    for (const { name, type } of familiesOf(await scrape())) {
      expect(name).toMatch(/^(mooring|process)_[a-z_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent)$/)
    }
  })

  test('use the labels quantile and le only in summaries and histograms', async () => {
    const text = await scrape()
    const histograms = new Set(familiesOf(text).flatMap(({ name, type }) => (type === 'histogram' ? [`${name}_bucket`] : [])))
    for (const [, name = '', label = ''] of text.matchAll(/^(\w+)\{(?:[^}]*,)?(quantile|le)="/gm))
      expect([name, label]).toEqual([histograms.has(name) ? name : 'a histogram', 'le'])
  })

  test('have no label of unbounded values: no tenant, id, name or requested path', async () => {
    const text = await scrape()
    for (const unbounded of [acme.organization, instance.id, instance.name, 'observed', '/v1/nothing']) {
      expect(text).not.toContain(unbounded)
    }
    expect(text).toContain('route="/v1/instances/{id}/password"')
  })

  test('contain no secret', async () => {
    const text = await scrape()
    for (const secret of secrets) expect(text).not.toContain(secret)
  })
})

describe('the logs', () => {
  const read = async () => (await Promise.all(deployment.installation.logFiles.map((file) => readFile(file, 'utf8')))).join('\n')
  const upToHere = () => vi.waitUntil(async () => ((await read()).includes(lastRequest) ? read() : undefined), LATER)

  test('have a line of JSON for each request, with its id', async () => {
    const line = (await upToHere()).split('\n').find((text) => text.includes(lastRequest))
    expect(JSON.parse(line ?? '')).toMatchObject({ requestId: lastRequest, method: 'GET', route: '/v1/me', status: 200 })
  })

  test('have no duplicate key in a line', async () => {
    const lines = (await upToHere()).split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
    expect(lines.length).toBeGreaterThan(10)
    // JSON.parse keeps the last of duplicate keys, so the line serialized again would be shorter.
    expect(lines.filter((line) => JSON.stringify(JSON.parse(line)).length !== line.length)).toEqual([])
  })

  test('contain no secret, of this test file or any other', async () => {
    const text = await upToHere()
    for (const secret of secrets) expect(text).not.toContain(secret)
    expect(text).not.toMatch(/moor_[0-9A-Za-z]{46}/)
    expect(text).not.toMatch(/eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/)
    expect(text).not.toMatch(/postgres(ql)?:\/\/[^\s:/@]+:[^\s@]+@/)
    expect(text).not.toMatch(/PRIVATE KEY|SCRAM-SHA-256\$/)
  })

  test('contain no names that callers chose', async () => {
    expect(await upToHere()).not.toContain('/v1/nothing')
  })
})

test('the password still works, so the tests above searched for real secrets', async () => {
  const [, , rotated = ''] = secrets
  expect(await query({ ...instance, password: rotated }, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})
