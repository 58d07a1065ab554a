import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Bind, dnsArguments, startBind } from '../../support/acme/bind.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import type { Tunnel } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
const wrongSecret = randomBytes(32).toString('base64')
let httpPort: number
let closedPort: number
let bind: Bind
let pebble: Pebble
let wrongKey: string

beforeAll(async () => {
  httpPort = await freePort()
  closedPort = await freePort()
  bind = opened.use(await startBind())
  pebble = opened.use(await startPebble({ httpPort, nameserver: bind.address }))
  const directory = await mkdtemp(join(tmpdir(), 'mooring-key-'))
  opened.defer(() => rm(directory, { recursive: true, force: true }))
  wrongKey = join(directory, 'key')
  await writeFile(wrongKey, wrongSecret)
})
afterAll(() => opened.disposeAsync())

/** Starts Mooring; `args` override others. */
const started = (args: readonly string[]) =>
  startMooring({ args: [...acmeArguments(pebble, httpPort), ...dnsArguments(bind), ...args] })

async function create(mooring: Mooring): Promise<Tunnel> {
  const { regionId } = mooring.ready
  return (await mooring.call('POST', TUNNELS, { body: { name: 'one', regionId } })).body.data.tunnel
}

const certificateOf = async (mooring: Mooring, { id }: Tunnel) =>
  (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data.certificate

async function becomesValid(mooring: Mooring, tunnel: Tunnel): Promise<void> {
  await vi.waitFor(async () => {
    const { status, lastError } = await certificateOf(mooring, tunnel)
    expect([status, lastError]).toEqual(['valid', null])
  }, LATER)
}

const record = (domain: string) => `the TXT record _acme-challenge.${domain}`

test.each([
  {
    what: 'a wrong secret',
    args: () => ['--acme-tsig-key-file', wrongKey],
    error: () =>
      `${record('tunnel.example.test')} in the zone example.test cannot be written: the DNS server ${bind.address} has answered with BADSIG`,
  },
  {
    what: 'an unknown key',
    args: () => ['--acme-tsig-key-name', 'unknown'],
    error: () =>
      `the DNS server ${bind.address} has answered with BADKEY: it does not know this key, or has another algorithm for it (key unknown)`,
  },
  {
    what: 'a key that may not change the zone',
    args: () => ['--domain', 'tunnel.fixed.test'],
    error: () =>
      `${record('tunnel.fixed.test')} in the zone fixed.test cannot be written: the DNS server ${bind.address} has answered with REFUSED`,
  },
  {
    what: 'a zone that the server does not have',
    args: () => ['--acme-dns-zone', 'tunnel.example.test'],
    error: () =>
      `the DNS server ${bind.address} has answered with NOTAUTH: it is not the primary server of this zone (key mooring)`,
  },
  {
    what: 'another zone than that of the record',
    args: () => ['--acme-dns-zone', 'challenges.test'],
    error: () => 'the record _acme-challenge.tunnel.example.test is not in the zone challenges.test of spec.acme.dns.zone',
  },
  {
    what: 'a domain of which the server is not the primary',
    args: () => ['--domain', 'tunnel.elsewhere.test'],
    error: () => `(EREFUSED): check its DNS servers, or set spec.acme.nameservers`,
  },
  {
    what: 'a server that is away',
    args: () => ['--acme-dns-server', `127.0.0.1:${closedPort}`],
    error: () => `the DNS server 127.0.0.1:${closedPort} cannot be reached (ECONNREFUSED)`,
  },
])('with $what, lastError says which record, server and answer, and the CA is not asked', async ({ args, error }) => {
  const before = pebble.count(ORDERS)
  await using mooring = await started(args())
  const began = Date.now()
  const tunnel = await create(mooring)
  await vi.waitFor(async () => {
    const certificate = await certificateOf(mooring, tunnel)
    expect(certificate.status).toBe('failed')
    expect(certificate.lastError).toContain(error())
    expect(Date.parse(certificate.nextAttemptAt ?? '')).toBeGreaterThan(began)
  }, LATER)
  expect(pebble.count(ORDERS)).toBe(before)
  for (const secret of [wrongSecret, bind.key]) expect(mooring.output()).not.toContain(secret)
})

test('a CNAME record of _acme-challenge leads the record into another zone', async () => {
  const records = ['_acme-challenge.alias CNAME for-alias.challenges.test.']
  await using dns = await startBind({ key: bind.key, recursion: true, records })
  await using ca = await startPebble({ httpPort, nameserver: dns.address })
  await using mooring = await startMooring({
    args: [...acmeArguments(ca, httpPort), ...dnsArguments(dns), '--domain', 'alias.example.test'],
  })
  const tunnel = await create(mooring)
  await becomesValid(mooring, tunnel)
  expect(dns.log()).toContain("adding an RR at 'for-alias.challenges.test' TXT")
  await vi.waitFor(async () => expect(await dns.texts('for-alias.challenges.test')).toEqual([]), LATER)
})

test('once the DNS server is back the certificate follows, without a restart', async () => {
  const port = await freePort()
  const nameserver = `127.0.0.1:${port}`
  await using ca = await startPebble({ httpPort, nameserver })
  await using mooring = await startMooring({
    args: [...acmeArguments(ca, httpPort), ...dnsArguments({ address: nameserver, keyFile: bind.keyFile })],
  })
  const tunnel = await create(mooring)
  const why = 'the operator cannot look up the CNAME record of _acme-challenge.tunnel.example.test (ECONNREFUSED)'
  await vi.waitFor(async () => {
    const { status, lastError } = await certificateOf(mooring, tunnel)
    expect(status).toBe('failed')
    expect(lastError).toContain(why)
  }, LATER)
  await using back = await startBind({ port, key: bind.key })
  await becomesValid(mooring, tunnel)
  await vi.waitFor(async () => expect(await back.texts('_acme-challenge.tunnel.example.test')).toEqual([]), LATER)
})

test('with the check off, the record is written without asking the authoritative servers', async () => {
  await using mooring = await started(['--acme-check', 'off'])
  await becomesValid(mooring, await create(mooring))
  await vi.waitFor(async () => expect(await bind.texts('_acme-challenge.tunnel.example.test')).toEqual([]), LATER)
})
