import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { codeOf } from '../../support/answers.ts'
import { query } from '../../support/sql.ts'
import { type ApiServer, apiServerOf } from './api-server.ts'
import { type FaultBench, openFaultBench } from './bench.ts'

/** How long it is away: past the lease of the leader, past all that is remembered of permissions. */
const AWAY_MS = 60_000
const PROBE = `back-${Date.now().toString(36)}`

let bench: FaultBench
let apiServer: ApiServer
beforeAll(async () => {
  bench = await openFaultBench()
  apiServer = await apiServerOf(inject('cluster').kubeconfig)
})
afterAll(async () => {
  await apiServer[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

test('with the API server of Kubernetes away databases go on, the API says so, and all comes back by itself', async () => {
  const instance = await bench.granted('before')
  await query(instance, 'CREATE TABLE kept (n int)')
  const path = `/v1/instances/${instance.id}`
  await apiServer.kill()
  const until = Date.now() + AWAY_MS
  const answers = new Set<string>()
  for (let n = 1; Date.now() < until; n += 1) {
    await query(instance, `INSERT INTO kept VALUES (${n})`)
    answers.add(`GET ${codeOf(await bench.editor('GET', path))}`)
    answers.add(`POST ${codeOf(await bench.create('during'))}`)
    expect(await query(instance, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n }])
  }
  expect([...answers].filter((answer) => !/^(GET 200 OK|(GET|POST) 503 unavailable)$/.test(answer))).toEqual([])
  expect(answers).toContain('POST 503 unavailable')
  await apiServer.start()

  const during = await bench.granted('during')
  expect(await query(during, 'SELECT current_user AS user')).toEqual([{ user: during.name }])
  expect(codeOf(await bench.editor('GET', path))).toBe('200 OK')
  const isReady = async (component: 'operator' | 'apiserver') => {
    const pods = await bench.components.pods(component)
    return pods.length === 2 && pods.every(({ ready }) => ready)
  }
  // One that has ended before is started again ever later.
  const bothReady = async () => [await isReady('operator'), await isReady('apiserver')]
  await expect.poll(bothReady, { timeout: 120_000, interval: 500 }).toEqual([true, true])
  expect((await bench.editor('DELETE', path)).status).toBe(200)
  await bench.expectOneOfEach()
  // Kubernetes' own controllers take their time to come back, which deletes namespaces.
  await bench.clients.kubectl(['create', 'namespace', PROBE])
  await bench.clients.kubectl(['delete', 'namespace', PROBE, '--timeout=120s'])
}, 360_000)
