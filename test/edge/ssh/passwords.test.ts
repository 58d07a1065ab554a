import { sshClient } from '../../support/edge/ssh2-client.ts'
import { createHash, randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { PASSWORD_LIFE_MS, TunnelPassword } from '../../../crds/tunnel-password.ts'
import { systemClock } from '../../../edge/clock.ts'
import { createRoutes, routedPasswordIndexes } from '../../../edge/routes.ts'
import { createSessions } from '../../../edge/sessions.ts'
import { generateHostKeys } from '../../../edge/ssh/host-keys.ts'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { createSshServer } from '../../../edge/ssh/server.ts'
import type { ConnectionRecord } from '../../../journal/port.ts'
import { createCacheSet } from '../../../store/cache.ts'
import { openTemporaryStore } from '../../support/store/temporary-store.ts'
import { SOON } from '../../support/patience.ts'

// Passwords created with kubectl, and the SSH side of an edge that reads resources only.

const { store, ...temporary } = await openTemporaryStore()
const stop = new AbortController()
const onError = vi.fn()
const set = createCacheSet({ store, onError })
const [tunnels, passwords] = [set.cached(Tunnel), set.cached(TunnelPassword, routedPasswordIndexes)]
/** Milliseconds by which the edge's clock is ahead. */
let ahead = 0
const date = () => Date.now() + ahead
const routes = createRoutes({ endpoint: 'main', domain: 'tunnel.test', tunnels, passwords, onError, date })
const records: ConnectionRecord[] = []
const server = createSshServer({
  ...{ edge: 'edge-a', hostKeys: generateHostKeys(), routes, sessions: createSessions(), registry: new Registry() },
  journal: {
    connection: async (record) => void records.push(record),
  },
  limits: DEFAULT_SSH_LIMITS,
  address: () => ({ sshHost: 'ssh.test', sshPort: 22, httpsPort: 443 }),
  trusted: undefined,
  log: pino({ level: 'silent' }),
  ...{ now: systemClock.now, date },
})
const work = set.run(stop.signal)
const port = await server.listen('127.0.0.1', 0)
const ACME = 'acme--prod'
const EVE = 'eve--prod'

beforeAll(async () => {
  await set.synced()
  for (const name of [ACME, EVE]) await store.create(Namespace, { metadata: { name } })
})
afterAll(async () => {
  await server.close()
  routes[Symbol.dispose]()
  stop.abort()
  await work
  await temporary[Symbol.asyncDispose]()
})

interface Served {
  readonly namespace: string
  readonly name: string
  readonly hostname: string
  readonly uid: string
}

async function makeTunnel(namespace: string, name = `web-${randomBytes(4).toString('hex')}`, spec = {}): Promise<Served> {
  const hostname = randomBytes(8).toString('hex')
  const { metadata } = await store.create(Tunnel, { metadata: { namespace, name }, spec: { regionId: 1, ...spec } })
  await store.patchStatus(Tunnel, { namespace, name }, { hostname, endpointRef: { name: 'main' } })
  await vi.waitFor(() => expect(routes.get(hostname)?.id).toBe(metadata.uid), SOON)
  return { namespace, name, hostname, uid: metadata.uid }
}

interface Made {
  readonly secret?: string
  readonly name?: string
  readonly expiresAt?: string
}

/** Creates a password with an arbitrary hash, as kubectl can. Resolves when the edge has it. */
async function makePassword({ namespace, name: tunnel, hostname }: Served, made: Made = {}): Promise<string> {
  const { secret = `mt_${randomBytes(16).toString('hex')}`, expiresAt = '2099-01-01T00:00:00Z' } = made
  const sha256 = createHash('sha256').update(secret).digest('hex')
  const { metadata } = await store.create(TunnelPassword, {
    metadata: { namespace, name: made.name ?? `p-${randomBytes(4).toString('hex')}` },
    spec: { tunnelRef: { name: tunnel }, sha256, expiresAt },
  })
  await vi.waitFor(() => expect(routes.get(hostname)?.passwords.map(({ id }) => id)).toContain(metadata.uid), SOON)
  return secret
}

/** Logs in and requests a forward. @returns the uid of the opened tunnel, or the error's message */
function logIn(username: string, password: string, bind = ''): Promise<string | undefined> {
  const client = sshClient()
  const before = records.length
  onTestFinished(() => void client.destroy())
  return new Promise((resolve) => {
    client.once('error', (error) => resolve(error.message))
    client.once('ready', () =>
      client.forwardIn(bind, 80, (refused) =>
        resolve(refused?.message ?? records.slice(before).find(({ type }) => type === 'connect')?.tunnel),
      ),
    )
    client.connect({ host: '127.0.0.1', port: port, username, password })
  })
}

const recordsOf = ({ uid }: Served) => records.filter(({ tunnel }) => tunnel === uid)
const REFUSED = 'All configured authentication methods failed'

describe('a password whose hash another tenant knows', () => {
  test('and that both tenants use opens the tunnel of the user name, and none with another user name', async () => {
    const [theirs, mine] = [await makeTunnel(EVE), await makeTunnel(ACME)]
    const secret = await makePassword(theirs)
    expect(await logIn('anyone', secret)).toBe(theirs.uid)
    await makePassword(mine, { secret })
    expect(await logIn(mine.hostname, secret, mine.hostname)).toBe(mine.uid)
    expect(await logIn(mine.hostname, secret)).toBe(mine.uid)
    expect(await logIn(theirs.hostname, secret)).toBe(theirs.uid)
    expect(await logIn('anyone', secret)).toBe(REFUSED)
  })

  test('does not open a tunnel that does not have it', async () => {
    const [theirs, mine] = [await makeTunnel(EVE), await makeTunnel(ACME)]
    const secret = await makePassword(theirs)
    expect(await logIn(mine.hostname, secret)).toBe(REFUSED)
    await vi.waitFor(() => expect(recordsOf(mine)).toMatchObject([{ type: 'refused', reason: 'no_credential' }]), SOON)
  })

  test('and that exists twice for one tunnel opens it with any user name', async () => {
    const mine = await makeTunnel(ACME)
    const secret = await makePassword(mine)
    await makePassword(mine, { secret })
    expect(await logIn('anyone', secret)).toBe(mine.uid)
  })
})

test('the eleventh password of a tunnel is rejected until an older one is deleted', async () => {
  const mine = await makeTunnel(ACME)
  const names = Array.from({ length: 11 }, (_, index) => `${mine.name}-${String.fromCharCode(97 + index)}`)
  const secrets: string[] = []
  for (const name of names) secrets.push(await makePassword(mine, { name }))
  const [first = '', tenth = '', eleventh = ''] = [secrets[0], secrets[9], secrets[10]]
  expect(await logIn(mine.hostname, first)).toBe(mine.uid)
  expect(await logIn('anyone', tenth)).toBe(mine.uid)
  expect(await logIn(mine.hostname, eleventh)).toBe(REFUSED)
  expect(await logIn('anyone', eleventh)).toBe(REFUSED)
  await store.delete(TunnelPassword, { namespace: ACME, name: names[3] ?? '' })
  await vi.waitFor(() => expect(routes.get(mine.hostname)?.passwords).toHaveLength(10), SOON)
  expect(await logIn(mine.hostname, eleventh)).toBe(mine.uid)
})

test('a password of a deleted tunnel does not open a later tunnel of the same name', async () => {
  const earlier = await makeTunnel(ACME)
  const secret = await makePassword(earlier, { name: `${earlier.name}-p` })
  const owner = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: earlier.name, uid: earlier.uid }
  const key = { namespace: ACME, name: `${earlier.name}-p` }
  // A foreign finalizer keeps the password longer than its tunnel.
  await store.mergePatch(TunnelPassword, key, { metadata: { ownerReferences: [owner], finalizers: ['example.com/kept'] } })
  await store.delete(Tunnel, { namespace: ACME, name: earlier.name })
  const later = await makeTunnel(ACME, earlier.name)
  expect(await logIn(later.hostname, secret)).toBe(REFUSED)
  expect(await logIn('anyone', secret)).toBe(REFUSED)
})

test('an expired tunnel that still exists ends its sessions and rejects logins', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const mine = await makeTunnel(ACME, undefined, { expiresAt })
  const secret = await makePassword(mine)
  expect(await logIn(mine.hostname, secret)).toBe(mine.uid)
  onTestFinished(() => {
    ahead = 0
  })
  ahead = 3_600_000
  await vi.waitFor(() => expect(recordsOf(mine).at(-1)).toMatchObject({ type: 'disconnect', reason: 'tunnel_deleted' }), SOON)
  for (const user of [mine.hostname, 'anyone']) expect(await logIn(user, secret)).toBe(REFUSED)
})

test('a password with an expiry in years ends after four hours, with its session', async () => {
  const mine = await makeTunnel(ACME)
  const secret = await makePassword(mine)
  onTestFinished(() => {
    ahead = 0
  })
  ahead = PASSWORD_LIFE_MS - 60_000
  expect(await logIn(mine.hostname, secret)).toBe(mine.uid)
  ahead = PASSWORD_LIFE_MS
  await vi.waitFor(() => expect(recordsOf(mine).at(-1)).toMatchObject({ type: 'disconnect', reason: 'password_expired' }), SOON)
  expect(await logIn('anyone', secret)).toBe(REFUSED)
})
