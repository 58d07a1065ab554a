import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Bind, startBind } from '../../support/acme/bind.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { knownRecord, recordStatus } from '../../support/acme/record.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

/** Challenge dns-persist-01 (draft-ietf-acme-dns-persist): Mooring has no key for DNS, an administrator creates the record. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const RECORD = '_validation-persist.tunnel.example.test'
/** Failed authorizations in Pebble's log. */
const FAILED = /set INVALID by completed challenge/g

const opened = new AsyncDisposableStack()
let httpPort: number
let bind: Bind
let pebble: Pebble

beforeAll(async () => {
  httpPort = await freePort()
  bind = opened.use(await startBind())
  pebble = opened.use(await startPebble({ httpPort, nameserver: bind.address }))
})
afterAll(() => opened.disposeAsync())

const argumentsOf = (ca: Pebble, more: readonly string[]) => [
  ...acmeArguments(ca, httpPort),
  ...['--acme-challenge', 'dns-persist-01', ...more],
]
const started = (...more: readonly string[]) => startMooring({ args: argumentsOf(pebble, more) })

async function create(mooring: Mooring, name = 'one'): Promise<Tunnel> {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId } })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

const certificateOf = async (mooring: Mooring, { id }: Tunnel) =>
  (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data.certificate

const valid = (mooring: Mooring, tunnel: Tunnel) =>
  vi.waitFor(async () => {
    const certificate = await certificateOf(mooring, tunnel)
    expect(certificate, mooring.output().slice(-2000)).toMatchObject({ status: 'valid', lastError: null, nextAttemptAt: null })
    return certificate
  }, LATER)

const failsWith = (mooring: Mooring, tunnel: Tunnel, message: RegExp) =>
  vi.waitFor(async () => {
    const { status, lastError } = await certificateOf(mooring, tunnel)
    expect(status).toBe('failed')
    expect(lastError).toMatch(message)
    return lastError ?? ''
  }, LATER)

/** Alternative names of the certificate that a visitor gets, verified with the CA's root. */
async function presented({ hostname, endpoint }: Tunnel): Promise<string | undefined> {
  const servername = `${hostname}.${endpoint.domain}`
  const socket = connect({ port: endpoint.httpsPort, host: '127.0.0.1', servername, ca: await pebble.root() })
  await once(socket, 'secureConnect')
  const { subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname
}

test('without the record, three places name it and the CA gets no order; with it, the wildcard certificate follows', async () => {
  await using mooring = await started()
  const { dataDir } = mooring
  // Before the first tunnel is made.
  const record = await knownRecord(dataDir)
  expect(record.name).toBe(RECORD)
  expect(record.value).toMatch(
    /^pebble\.letsencrypt\.org; accounturi=https:\/\/127\.0\.0\.1:\d+\/my-account\/\w+; policy=wildcard$/,
  )
  const needed = `the TXT record ${RECORD} must have the value "${record.value}"; ns.example.test (${bind.address}) has no such record`
  await vi.waitFor(async () => {
    expect((await recordStatus(dataDir)).ready).toMatchObject({ status: 'False', reason: 'DnsRecordMissing' })
    expect((await recordStatus(dataDir)).ready?.message).toContain(needed)
  }, LATER)
  const tunnel = await create(mooring)
  expect(await failsWith(mooring, tunnel, /has no such record/)).toContain(needed)
  const lines = mooring.output().split('\n')
  expect(lines.filter((line) => line.includes('DnsRecordMissing') && line.includes(record.value.slice(0, 60)))).not.toEqual([])
  expect(pebble.count(ORDERS)).toBe(0)

  await bind.setTexts(RECORD, ['another.example; accounturi=https://another.example/1', record.value])
  expect(await valid(mooring, tunnel)).toMatchObject({ domain: '*.tunnel.example.test' })
  expect(await presented(tunnel)).toBe('DNS:*.tunnel.example.test')
  await vi.waitFor(async () => expect((await recordStatus(dataDir)).ready).toMatchObject({ status: 'True' }), LATER)
  expect((await recordStatus(dataDir)).record).toEqual(record)
  expect(await bind.texts(RECORD)).toContain(record.value)
  expect([pebble.count(ORDERS), pebble.count(FAILED)]).toEqual([1, 0])
})

test.each([
  {
    what: 'the account of another installation',
    value: (right: string) => right.replace(/my-account\/\w+/, 'my-account/another'),
    says: /has the value "pebble\.[^"]+another[^"]+", whose accounturi is that of another account/,
  },
  {
    what: 'no policy',
    value: (right: string) => right.replace('; policy=wildcard', ''),
    says: /has the value "[^"]+", which lacks policy=wildcard/,
  },
  {
    what: 'an end in the past',
    value: (right: string) => `${right}; persistUntil=1700000000`,
    says: /whose persistUntil is over/,
  },
  { what: 'another CA', value: () => 'ca.example; accounturi=x', says: /has only values for other purposes/ },
])('a record with $what is named, with the right value; the CA gets no order before it is right', async ({ value, says }) => {
  const before = pebble.count(ORDERS)
  // Without the record of an earlier test, whose error could be the first that the operator finds.
  await bind.setTexts(RECORD, [])
  await using mooring = await started()
  const record = await knownRecord(mooring.dataDir)
  await bind.setTexts(RECORD, [value(record.value)])
  const tunnel = await create(mooring)
  expect(await failsWith(mooring, tunnel, says)).toContain(`must have the value "${record.value}"`)
  expect(pebble.count(ORDERS)).toBe(before)
  await bind.setTexts(RECORD, [record.value])
  await valid(mooring, tunnel)
  expect([pebble.count(ORDERS) - before, pebble.count(FAILED)]).toEqual([1, 0])
})

test('one wildcard record of DNS serves certificates of single tunnels, also after a change of the account key', async () => {
  await using first = await started('--acme-certificates', 'perTunnel')
  const record = await knownRecord(first.dataDir)
  expect(record).toMatchObject({ name: '*.tunnel.example.test', value: expect.not.stringContaining('policy') as string })
  await bind.setTexts(record.name, [record.value])
  const [one, two] = [await create(first, 'one'), await create(first, 'two')]
  await Promise.all([valid(first, one), valid(first, two)])
  expect(await presented(one)).toBe(`DNS:${one.hostname}.tunnel.example.test`)
  const ended = once(first.process, 'exit')
  first.process.kill('SIGTERM')
  await ended

  const version = ['--acme-certificates', 'perTunnel', '--acme-account-key-version', '2']
  await using mooring = await startMooring({ dataDir: first.dataDir, args: argumentsOf(pebble, version) })
  await valid(mooring, await create(mooring, 'three'))
  expect(await knownRecord(mooring.dataDir)).toEqual(record)
  expect(pebble.count(FAILED)).toBe(0)
})

test('another account, because the CA has lost the first one, means another value', async () => {
  await using cleanup = new AsyncDisposableStack()
  const first = await startPebble({ httpPort, nameserver: bind.address })
  cleanup.use(first)
  await using mooring = await startMooring({ args: argumentsOf(first, []) })
  const record = await knownRecord(mooring.dataDir)
  await bind.setTexts(RECORD, [record.value])
  await first[Symbol.asyncDispose]()
  const { port, authority } = first
  await using second = await startPebble({ httpPort, nameserver: bind.address, port, authority })
  const tunnel = await create(mooring)
  const next = await vi.waitFor(async () => {
    const known = await knownRecord(mooring.dataDir)
    expect(known.value).not.toBe(record.value)
    return known
  }, LATER)
  await failsWith(mooring, tunnel, /whose accounturi is that of another account/)
  await bind.setTexts(RECORD, [next.value])
  await valid(mooring, tunnel)
  expect(second.count(FAILED)).toBe(0)
})

test('with the check off, the CA is asked at once', async () => {
  await using mooring = await started('--acme-check', 'off')
  const record = await knownRecord(mooring.dataDir)
  await bind.setTexts(RECORD, [record.value])
  await valid(mooring, await create(mooring))
})
