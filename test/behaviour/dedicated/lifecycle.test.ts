import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, type Database } from '../../support/api/answers.ts'
import { asInstance, createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { openSession, versionByUri } from '../../support/families/family-session.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { patient } from '../../support/patience.ts'

/** Life of a dedicated database of each motor, from outside. */

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const text = expect.stringMatching(/./) as string

/** Matcher of a database that runs, in the exact form of docs/api.md ("Dedicated databases"). */
const runningDatabase = ({ id, createdAt }: Database, engine: string) => ({
  ...{ id, name: text, organization: acme.organization, namespace: acme.namespace, engine },
  ...{ region: deployment.installation.region.name, plan: 'small', status: 'running', statusReason: null, statusCode: null },
  ...{ firewallRules: null, privateNetwork: false, pointInTimeRecovery: null, sshTunnel: null, monitoring: false },
  ...{
    restoreWindow: null,
    lastVerifiedRestore: null,
    engineVersion: text,
    createdAt,
    createdBy: expect.stringContaining(':editor-') as string,
  },
  connection: {
    ...{ host: text, port: expect.any(Number) as number, user: text, database: text, uri: text },
    password: expect.stringMatching(/^[0-9A-Za-z]{24}$/) as string,
    ca: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n/) as string,
    internalHost: deployment.installation.kind === 'embedded' ? null : text,
  },
})

describe.each(motorsUnderTest())('a dedicated database of %s', (motor) => {
  const client = clientOf(motor)
  const isRefused = expect.toSatisfy((error) => client.isRefusal(error)) as unknown
  const body = (name: string) => ({
    ...{ name, organization: acme.organization, namespace: acme.namespace },
    ...{ engine: motor, region: deployment.installation.region.id, plan: 'small' },
  })

  test('is created, used, given a new password and another plan, and deleted', { timeout: patient(600_000) }, async () => {
    const editor = dedicated(acme.as('editor'))
    const made = await createDatabase(editor, body('shop'))
    expect(made).toMatchObject({ name: 'shop', plan: 'small', connection: null })
    expect(['provisioning', 'running']).toContain(made.status)

    const running = await untilRunning(editor, made)
    expect(running).toEqual(runningDatabase(made, motor))
    const first = asInstance(running)
    expect(await client.user(first)).toBe(first.user)
    await client.add(first, 'kept')
    expect(await versionByUri(first)).toBe(running.engineVersion)

    await using session = await openSession(first)
    const rotated = (await expectSuccess(editor('POST', `${databasePath(made)}/password`))).body.data.database
    const second = asInstance(rotated)
    expect(second).toEqual({ ...first, password: second.password, uri: second.uri })
    expect(second.password).not.toBe(first.password)
    await expect(session.ping()).rejects.toThrow()
    await expect(client.user(first)).rejects.toEqual(isRefused)
    expect(await client.items(second)).toEqual(['kept'])

    const patched = await expectSuccess(editor('PATCH', databasePath(made), { body: { plan: 'medium' } }))
    expect(patched.body.data.database).toMatchObject({ plan: 'medium', connection: null })
    const resized = await untilRunning(editor, made)
    expect(resized).toMatchObject({ plan: 'medium', connection: { password: second.password } })
    expect(await client.items(asInstance(resized))).toEqual(['kept'])

    const deleted = await editor('DELETE', databasePath(made))
    expect([codeOf(deleted), deleted.body.data.database]).toMatchObject(['202 OK', { status: 'deleting', connection: null }])
    await untilGone(editor, made)
    expect(codeOf(await editor('DELETE', databasePath(made)))).toBe('404 not_found')
    await expect(client.user(asInstance(resized))).rejects.toThrow()
  })
})

test('a deleted database leaves nothing to another one of its name', { timeout: patient(600_000) }, async () => {
  const editor = dedicated(acme.as('editor'))
  const { region, motor } = deployment.installation
  const client = clientOf(motor)
  const body = { ...{ name: 'again', organization: acme.organization, namespace: acme.namespace }, plan: 'small' }
  const create = () => createDatabase(editor, { ...body, engine: motor, region: region.id })
  const first = await untilRunning(editor, await create())
  await client.add(asInstance(first), 'gone')
  await expectSuccess(editor('DELETE', databasePath(first)))
  await untilGone(editor, first)
  const second = await untilRunning(editor, await create())
  expect(second.connection?.database).not.toBe(first.connection?.database)
  expect(await client.items(asInstance(second))).toEqual([])
})
