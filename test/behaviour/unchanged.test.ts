import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Answer, codeOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Checks that a PATCH without an effective change writes nothing: no version, no time, no audit entry. */

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

async function actionsOf(id: string): Promise<readonly string[]> {
  const { entries } = (await expectSuccess(acme.as('viewer')('GET', `${acme.path}/audit?id=${id}`))).body.data
  return entries.map(({ action }) => action)
}

/** The audit log is in order of time: when the entry of a later change exists, no earlier entry is still to come. */
const untilActions = (id: string, actions: readonly string[]) =>
  vi.waitFor(async () => expect(await actionsOf(id)).toEqual(actions), LATER)

interface Patched {
  readonly path: string
  /** Changes that have no effect after the first of them. */
  readonly bodies: readonly object[]
  readonly another: object
  /** Returns the resource in an answer. */
  readonly of: (answer: Answer) => object
}

async function holds(id: string, { path, bodies, another, of }: Patched): Promise<void> {
  const patch = (body: object, version?: string) =>
    acme.as('editor')('PATCH', path, { body, headers: version === undefined ? {} : { 'If-Match': version } })
  const [first = {}] = bodies
  const changed = await expectSuccess(patch(first))
  const etag = String(changed.headers.etag)
  for (const body of bodies) {
    const again = await patch(body)
    expect([codeOf(again), again.headers.etag, of(again)]).toEqual(['200 OK', etag, of(changed)])
  }
  expect(codeOf(await patch(first, etag))).toBe('200 OK')
  expect(codeOf(await patch(first, '"1"'))).toBe('409 conflict')
  expect((await expectSuccess(acme.as('viewer')('GET', path))).headers.etag).toBe(etag)
  expect(codeOf(await patch(another, etag))).toBe('200 OK')
  await untilActions(id, ['update', 'update', 'create'])
}

test('PATCH without an effective change writes nothing of a tunnel', async () => {
  const { id } = await acme.tunnel()
  await holds(id, {
    path: `${acme.path}/tunnels/${id}`,
    bodies: [
      { name: 'shop', config: { httpsOnly: true, sshIPWhitelist: ['192.0.2.0/24'] } },
      { name: 'shop' },
      {},
      { config: {} },
      { config: { sshIPWhitelist: ['192.0.2.0/24'], target: null, allowCorsPreflight: null, authMode: 'both' } },
    ],
    another: { config: { httpsOnly: null } },
    of: ({ body }) => body.data.tunnel,
  })
})

test('PATCH without an effective change writes nothing of a database', async () => {
  const { id } = await acme.instance()
  const at = new Date(Date.now() + 3_600_000)
  const expiresAt = at.toISOString()
  const local = `${new Date(at.getTime() + 7_200_000).toISOString().slice(0, -1)}+02:00`
  await holds(id, {
    path: `/v1/instances/${id}`,
    bodies: [{ identifier: 'shop', expiresAt }, { identifier: 'shop' }, {}, { isEnabled: true }, { expiresAt: local }],
    another: { expiresAt: null },
    of: ({ body }) => body.data.instance,
  })
})
