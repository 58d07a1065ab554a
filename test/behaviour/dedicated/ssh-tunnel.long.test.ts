import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, type Database } from '../../support/api/answers.ts'
import { asInstance, createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { type DatabaseUser, databaseUser, userThrough } from '../../support/dedicated/ssh-tunnel.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { LATER } from '../../support/patience.ts'

/** SSH tunnel of a dedicated database, with stock clients from outside. */

const LONG = { timeout: 600_000 }

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let other: Tenant
let person: DatabaseUser
beforeAll(async () => {
  acme = await deployment.namespace()
  other = await deployment.namespace()
  person = cleanup.use(await databaseUser())
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const editor = (tenant = acme) => dedicated(tenant.as('editor'))

async function running(name: string, more: object = {}, tenant = acme): Promise<Database> {
  const { organization, namespace } = tenant
  const { motor: engine, region } = deployment.installation
  const body = { name, organization, namespace, engine, region: region.id, plan: 'small', ...more }
  return untilRunning(editor(tenant), await createDatabase(editor(tenant), body))
}

const withKey = () => ({ sshTunnel: { authorizedKeys: [person.publicKey] } })
const patch = (database: Database, body: object) => expectSuccess(editor()('PATCH', databasePath(database), { body }))

async function newPassword(database: Database, tenant = acme): Promise<{ readonly id: string; readonly password: string }> {
  const answer = await expectSuccess(editor(tenant)('POST', `${databasePath(database)}/ssh-passwords`, { body: {} }))
  const { id, password } = answer.body.data.password
  return { id, password }
}

/** Waits until the database is reached through the tunnel: an engine takes new rules in a moment. */
const reaches = (database: Database, port: number) =>
  vi.waitFor(async () => expect(await userThrough(database, port)).toBe(database.connection?.user), LATER)

/** Returns the usual port of the engine, and the last part of the command: user, host and port of the edge. */
function addressOf({ connection }: Database): { readonly port: string; readonly target: string } {
  const [, port = '', target = ''] = /-L (\d+):db:\d+ (.+)$/.exec(connection?.ssh?.command ?? '') ?? []
  return { port, target }
}

const SSH_COMMAND = /^ssh -N -L (\d+):db:\1 [0-9a-f]{16}@\S+ -p \d+$/

describe.each(motorsUnderTest())('the SSH tunnel of a database of %s', (engine) => {
  test('opens it to the stock client of the engine, with a key and with a password', LONG, async () => {
    const shop = await running(`shop-${engine.replaceAll('.', '-')}`, { engine, ...withKey() })
    expect(shop).toMatchObject({ sshTunnel: { authMode: 'both', authorizedKeys: [person.publicKey] } })
    expect(shop.connection?.ssh?.command).toMatch(SSH_COMMAND)
    await using client = await person.open(shop)
    await reaches(shop, client.port)
    const { id, password } = await newPassword(shop)
    await using second = await person.open(shop, { password })
    await reaches(shop, second.port)

    await expectSuccess(editor()('DELETE', `${databasePath(shop)}/ssh-passwords/${id}`))
    expect(await second.exited).not.toBe(0)
    expect(second.said()).toContain('Mooring: the password of this login was revoked.')

    // A change of plan restarts the server. The login stays, and new connections work.
    await patch(shop, { plan: 'medium' })
    await untilRunning(editor(), shop)
    await reaches(shop, client.port)

    await patch(shop, { sshTunnel: { authorizedKeys: [] } })
    expect(await client.exited).not.toBe(0)
    expect(client.said()).toContain('Mooring: the key of this login was removed')
    await expectSuccess(editor()('DELETE', databasePath(shop)))
    await untilGone(editor(), shop)
  })
})

test('a private database is reached through its SSH tunnel, from the addresses of its rules alone', LONG, async () => {
  const hidden = await running('hidden', { privateNetwork: true, ...withKey() })
  await using client = await person.open(hidden)
  await reaches(hidden, client.port)
  await patch(hidden, { firewallRules: [{ cidr: '203.0.113.7' }] })
  expect(await client.exited).not.toBe(0)
  expect(client.said()).toContain('Mooring: the firewall rules of this database no longer allow your address.')
  if (deployment.installation.kind === 'embedded') {
    // The engine admits the edge, not every client of this machine.
    await patch(hidden, { privateNetwork: null })
    const restricted = await untilRunning(editor(), hidden)
    await expect(clientOf(restricted.engine).user(asInstance(restricted))).rejects.toThrow()
  }
  await patch(hidden, { privateNetwork: true, firewallRules: [{ cidr: '0.0.0.0/0' }, { cidr: '::/0' }] })
  const closed = await untilRunning(editor(), hidden)
  await using allowed = await person.open(closed)
  await reaches(closed, allowed.port)
  await patch(hidden, { firewallRules: [] })
  expect(await allowed.exited).not.toBe(0)
  await patch(hidden, { firewallRules: null })
  await untilRunning(editor(), hidden)
  await using free = await person.open(closed)
  await reaches(closed, free.port)

  // Without the add-on the session ends, and no login works.
  await patch(hidden, { privateNetwork: null, firewallRules: [], sshTunnel: null })
  expect(await free.exited).not.toBe(0)
  expect(free.said()).toContain('Mooring: the SSH tunnel of this database was taken away')
  const plain = await untilRunning(editor(), hidden)
  expect([plain.sshTunnel, plain.connection?.ssh]).toEqual([null, undefined])
  // In a cluster the connection would be dropped, and the attempt would last for two minutes.
  if (deployment.installation.kind === 'embedded') await expect(clientOf(plain.engine).user(asInstance(plain))).rejects.toThrow()
  await using refused = await person.open(closed)
  expect(await refused.exited).not.toBe(0)
  expect(codeOf(await editor()('POST', `${databasePath(hidden)}/ssh-passwords`, { body: {} }))).toBe('409 conflict')

  // It comes back with another hostname.
  await patch(hidden, { firewallRules: null, ...withKey() })
  const again = await vi.waitFor(async () => {
    const now = await untilRunning(editor(), hidden)
    expect(now.connection?.ssh?.hostname).toMatch(/^[0-9a-f]{16}$/)
    return now
  }, LATER)
  await using last = await person.open(again)
  await reaches(again, last.port)
  await expectSuccess(editor()('DELETE', databasePath(hidden)))
  expect(await last.exited).not.toBe(0)
  await untilGone(editor(), hidden)
})

test('a login opens no other host, no port and no program, and the journal records it', LONG, async () => {
  const shop = await running('narrow', withKey())
  const { port, target } = addressOf(shop)
  for (const asked of ['localhost:22', `db.example.com:${port}`, 'db:22', '127.0.0.1:28080']) {
    await using client = await person.open(shop, { command: `ssh -W ${asked} ${target}` })
    expect(await client.exited, asked).not.toBe(0)
    expect(client.said()).toContain(`Mooring: this login opens db:${port} alone, not`)
  }
  for (const host of ['localhost', '127.0.0.1', shop.connection?.internalHost ?? 'localhost']) {
    await using client = await person.open(shop, { command: `ssh -N -L ${port}:${host}:${port} ${target}` })
    await reaches(shop, client.port)
  }
  await using forward = await person.open(shop, { command: `ssh -N -R 80:localhost:1 ${target}` })
  expect(await forward.exited).not.toBe(0)
  expect(forward.said()).toContain('forwards no ports to you')
  const seen = async () => {
    const path = `${databasePath(shop)}/connections?include=refused`
    const { connections } = (await expectSuccess(editor()('GET', path))).body.data
    return connections.map(({ type, authMethod, reason }) => [type, authMethod, reason])
  }
  // Edges record independently: a later login on another edge could be recorded first.
  await vi.waitFor(async () => expect((await seen())[0]).toEqual(['disconnect', 'key', 'forward_refused']), LATER)
  await using stranger = await databaseUser()
  await using refused = await stranger.open(shop)
  expect(await refused.exited).not.toBe(0)
  expect(refused.said()).toContain('Mooring: this login is not accepted.')

  await vi.waitFor(async () => {
    const all = await seen()
    expect(all.slice(0, 2)).toEqual([
      ['refused', 'key', 'key'],
      ['disconnect', 'key', 'forward_refused'],
    ])
    expect(all.filter(([type]) => type === 'connect')).toHaveLength(8)
  }, LATER)
})

test('no login of another tenant, and no password of a tunnel, opens a database', LONG, async () => {
  const [own, foreign] = await Promise.all([
    running('mine', { sshTunnel: {} }),
    running('theirs', { sshTunnel: { authorizedKeys: [person.publicKey] } }, other),
  ])
  const tunnel = await acme.tunnel({ authorizedKeys: [person.publicKey] })
  const issued = await acme.as('editor')('POST', `${acme.path}/tunnels/${tunnel.id}/passwords`, { body: {} })
  const { password: ofTunnel } = (await expectSuccess(Promise.resolve(issued))).body.data.password
  const ofDatabase = await newPassword(own)
  const ofForeign = await newPassword(foreign, other)

  // The key and the passwords of other objects do not open `mine`.
  for (const password of [undefined, ofTunnel, ofForeign.password]) {
    await using client = await person.open(own, { password })
    expect(await client.exited).not.toBe(0)
  }
  // A password of the database does not open the tunnel, and no client reaches a database through a tunnel's login.
  const { port, target } = addressOf(own)
  const toTunnel = target.replace(/^[0-9a-f]{16}/, tunnel.hostname)
  const command = `ssh -N -L ${port}:db:${port} ${toTunnel}`
  await using wrong = await person.open(own, { command, password: ofDatabase.password })
  expect(await wrong.exited).not.toBe(0)
  await using tunnelled = await person.open(own, { command: `ssh -W db:${port} ${toTunnel}` })
  expect(await tunnelled.exited).not.toBe(0)
  expect(tunnelled.said()).toContain('Mooring forwards remote ports (-R) only')

  // Another tenant can neither read nor issue.
  for (const path of ['/ssh-passwords', '/connections', ''])
    expect(codeOf(await editor(other)('GET', `${databasePath(own)}${path}`))).toBe('404 not_found')
  expect(codeOf(await editor(other)('POST', `${databasePath(own)}/ssh-passwords`, { body: {} }))).toBe('404 not_found')
  const stolen = `${databasePath(foreign)}/ssh-passwords/${ofDatabase.id}`
  expect(codeOf(await editor(other)('DELETE', stolen))).toBe('404 not_found')

  await using client = await person.open(own, { password: ofDatabase.password })
  await reaches(own, client.port)
})
