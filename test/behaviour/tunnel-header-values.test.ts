import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Tunnel } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { type Seen, startLocalServer, visit } from '../support/edge/visitor.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Header values by REST: into a Secret, by the operator to the edge, to the backend. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let sshUser: Person
let localPort: number
beforeAll(async () => {
  acme = await deployment.namespace()
  sshUser = cleanup.use(await person())
  localPort = cleanup.use(await startLocalServer()).port
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const authorization = (value: string) => ({ name: 'Authorization', value, type: 'request' })
const config = (...liveHeaderModifications: readonly object[]) => ({
  ...{ authorizedKeys: [sshUser.publicKey], liveHeaderModifications },
})
const patch = (tunnel: Tunnel, ...items: readonly object[]) =>
  expectSuccess(
    acme.as('editor')('PATCH', `${acme.path}/tunnels/${tunnel.id}`, { body: { config: { liveHeaderModifications: items } } }),
  )

/** Headers that the backend receives from a visitor who sends a value of their own. */
async function received(tunnel: Tunnel): Promise<Seen['headers']> {
  const headers = { Authorization: 'forged', 'X-Other': 'forged' }
  const { status, body } = await visit(deployment.installation.ca, tunnel, '/', { headers })
  expect(status).toBe(200)
  return (JSON.parse(body) as Seen).headers
}
const receives = (tunnel: Tunnel, headers: object) =>
  vi.waitFor(async () => expect(await received(tunnel)).toMatchObject(headers), LATER)

test('a backend gets the values of a new tunnel with its first request, and each change without a reconnect', async () => {
  const tunnel = await acme.tunnel(config(authorization('Bearer 1'), { name: 'X-Other', value: '', type: 'request' }))
  await using client = await sshUser.forward(tunnel, localPort)
  await vi.waitFor(async () => expect((await visit(deployment.installation.ca, tunnel, '/')).status).toBe(200), LATER)
  const first = await received(tunnel)
  expect([first.authorization, first['x-other']]).toEqual(['Bearer 1', undefined])

  const changed = await patch(tunnel, authorization('Bearer 2'), { name: 'X-Other', value: 'o', type: 'request' })
  expect(changed.body.data.tunnel.config.liveHeaderModifications).toMatchObject([authorization('Bearer 2'), { value: 'o' }])
  await receives(tunnel, { authorization: 'Bearer 2', 'x-other': 'o' })
  await patch(tunnel)
  await receives(tunnel, { authorization: 'forged', 'x-other': 'forged' })
  await patch(tunnel, authorization('Bearer 3'))
  await receives(tunnel, { authorization: 'Bearer 3', 'x-other': 'forged' })
  expect(client.said()).not.toContain('closed')
})

test('while a value is replaced, each request has the old value or the new one', async () => {
  const tunnel = await acme.tunnel(config(authorization('Bearer 0')))
  await using client = await sshUser.forward(tunnel, localPort)
  await vi.waitFor(async () => expect((await visit(deployment.installation.ca, tunnel, '/')).status).toBe(200), LATER)
  const seen = new Set<string | undefined>()
  const over = new AbortController()
  const visiting = (async () => {
    while (!over.signal.aborted) seen.add((await received(tunnel)).authorization)
  })()
  for (const value of ['Bearer 1', 'Bearer 2', 'Bearer 3']) {
    await patch(tunnel, authorization(value))
    await receives(tunnel, { authorization: value })
  }
  over.abort()
  await visiting
  expect([...seen]).toEqual(['Bearer 0', 'Bearer 1', 'Bearer 2', 'Bearer 3'])
  expect(client.said()).not.toContain('closed')
})

test('a repeated creation is the same tunnel with its values; a patch that changes nothing writes nothing', async () => {
  const key = {
    headers: { 'Idempotency-Key': randomUUID() },
    body: { name: 'web', regionId: 1, config: config(authorization('Bearer 1')) },
  }
  const editor = acme.as('editor')
  const post = async () => (await expectSuccess(editor('POST', `${acme.path}/tunnels`, key))).body.data.tunnel
  const [first, second] = await Promise.all([post(), post()])
  expect(second.id).toBe(first.id)
  expect(second.config.liveHeaderModifications).toEqual([authorization('Bearer 1')])
  const before = (await expectSuccess(acme.as('editor')('GET', `${acme.path}/tunnels/${first.id}`))).headers.etag
  const same = await patch(first, authorization('Bearer 1'))
  expect(same.headers.etag).toBe(before)
})
