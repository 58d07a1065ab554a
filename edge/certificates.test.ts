import { pino } from 'pino'
import { beforeAll, expect, test, vi } from 'vitest'
import type { Secret } from '../crds/core.ts'
import { createCa, issueCertificate, type KeyPair } from '../operator/certificates/local-ca.ts'
import { StoreError, type Store } from '../store/port.ts'
import { createCertificates } from './certificates.ts'
import type { Pem } from './pems.ts'
import type { ListedRoutes, Route } from './route.ts'

const [HOSTNAME, DOMAIN] = ['0123456789abcdef', 'tunnel.localhost']
const [OWN, SHARED] = [`tunnel-${HOSTNAME}-certificate`, 'endpoint-main-certificate']
const SERVER_NAME = `${HOSTNAME}.${DOMAIN}`
const soon = { timeout: 60_000, interval: 5 }

let pair: KeyPair
beforeAll(async () => {
  pair = await issueCertificate({ ca: await createCa(new Date()), names: [SERVER_NAME], now: new Date() })
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const secret = (name: string, endpoint = 'main'): Secret => ({
  ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' },
  metadata: {
    ...{
      name,
      namespace: 'mooring-system',
      uid: name,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2030-01-01T00:00:00Z',
    },
    labels: { 'mooring.dev/endpoint': endpoint },
  },
  data: { 'tls.crt': base64(pair.certificate), 'tls.key': base64(pair.key) },
})

function setUp({ wildcard = false, keep = false, kept = new Map<string, Pem>() } = {}) {
  const secrets = new Map<string, Secret>()
  const state = { away: false, certifiedAt: '2030-01-01T00:00:00Z', there: true }
  const asked: string[] = []
  const get = (_kind: unknown, { name }: { readonly name: string }) => {
    asked.push(name)
    return state.away ? Promise.reject(new StoreError('unavailable', 'away')) : Promise.resolve(secrets.get(name))
  }
  const listeners = new Set<(hostname: string) => void>()
  const routes: ListedRoutes = {
    domain: DOMAIN,
    get: (hostname) => (state.there && hostname === HOSTNAME ? ({ certifiedAt: state.certifiedAt } as Route) : undefined),
    hostnames: () => (state.there ? [HOSTNAME] : []),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const pems = {
    all: () => kept,
    keep: (name: string, pem: Pem | undefined) => {
      if (pem) kept.set(name, pem)
      else kept.delete(name)
    },
  }
  const forgotten: string[] = []
  const certificates = createCertificates(
    {
      ...{ routes, endpoint: 'main', isWildcard: () => wildcard, log: pino({ level: 'silent' }) },
      store: { get: get as Store['get'] },
      kept: keep ? pems : undefined,
    },
    (name) => forgotten.push(name),
  )
  const change = (changes: Partial<typeof state>) => {
    Object.assign(state, changes)
    for (const listener of listeners) listener(HOSTNAME)
  }
  return { secrets, state, asked, forgotten, kept, certificates, change }
}

test.each([
  { does: 'its own certificate', wildcard: false, held: OWN, name: SERVER_NAME, asked: [OWN] },
  { does: 'the shared certificate', wildcard: true, held: SHARED, name: SERVER_NAME, asked: [SHARED] },
  {
    does: 'the shared certificate, without such a tunnel',
    wildcard: true,
    held: SHARED,
    name: `${'f'.repeat(16)}.${DOMAIN}`,
    asked: [SHARED],
  },
  {
    does: 'its own certificate while the shared one does not exist yet',
    wildcard: true,
    held: OWN,
    name: SERVER_NAME,
    asked: [SHARED, OWN],
  },
])('a name is answered with $does', async ({ wildcard, held, name, asked: wanted }) => {
  const { secrets, asked, certificates } = setUp({ wildcard })
  secrets.set(held, secret(held))
  expect(await certificates.contextFor(name)).toBeDefined()
  expect(asked).toEqual(wanted)
})

test.each([
  { does: 'a name of no tunnel', name: `${'f'.repeat(16)}.${DOMAIN}` },
  { does: 'a name below another domain', name: `${HOSTNAME}.example.com` },
  { does: 'the domain itself', name: DOMAIN },
  { does: 'a name that would be another Secret’s', name: `../x.${DOMAIN}` },
])('$does asks the API for nothing', async ({ name }) => {
  const { asked, certificates } = setUp()
  expect(await certificates.contextFor(name)).toBeUndefined()
  expect(asked).toEqual([])
})

test('a missing certificate is requested a few times, however many handshakes wait, then given up', async () => {
  const { asked, certificates } = setUp()
  const visits = Array.from({ length: 50 }, () => certificates.contextFor(SERVER_NAME))
  expect(new Set(await Promise.all(visits))).toEqual(new Set([undefined]))
  expect(asked.length).toBeLessThan(15)
})

test('a handshake waits for a certificate that this edge may not read yet', async () => {
  const { secrets, asked, state, certificates } = setUp()
  secrets.set(OWN, secret(OWN))
  state.away = true
  const visit = certificates.contextFor(SERVER_NAME)
  await vi.waitFor(() => expect(asked).not.toEqual([]), soon)
  state.away = false
  expect(await visit).toBeDefined()
})

test('a certificate of another endpoint is ignored', async () => {
  const { secrets, certificates } = setUp()
  secrets.set(OWN, secret(OWN, 'other'))
  expect(await certificates.contextFor(SERVER_NAME)).toBeUndefined()
})

test('a certificate is fetched once, and again when the tunnel gets another one', async () => {
  const { secrets, asked, forgotten, certificates, change } = setUp()
  secrets.set(OWN, secret(OWN))
  for (let visit = 0; visit < 3; visit += 1) await certificates.contextFor(SERVER_NAME)
  change({})
  expect([asked, forgotten]).toEqual([[OWN], []])
  change({ certifiedAt: '2030-02-01T00:00:00Z' })
  expect(forgotten).toEqual([SERVER_NAME])
  await vi.waitFor(() => expect(asked).toEqual([OWN, OWN]), soon)
})

test('while the API is away the previous certificate stays in use', async () => {
  const { secrets, certificates, change } = setUp()
  secrets.set(OWN, secret(OWN))
  await certificates.contextFor(SERVER_NAME)
  change({ away: true, certifiedAt: '2030-02-01T00:00:00Z' })
  expect(await certificates.contextFor(SERVER_NAME)).toBeDefined()
})

test('with storage, certificates are fetched before a handshake, and deleted with their tunnel', async () => {
  const { secrets, asked, kept, change } = setUp({ keep: true })
  secrets.set(OWN, secret(OWN))
  await vi.waitFor(() => expect(asked).toEqual([OWN]), soon)
  change({ certifiedAt: '2030-02-01T00:00:00Z' })
  await vi.waitFor(() => expect(kept.get(OWN)).toMatchObject({ obtainedAt: '2030-02-01T00:00:00Z', key: pair.key }), soon)
  change({ there: false })
  expect(kept.size).toBe(0)
})

test('a stored certificate needs no API', async () => {
  const pem = { certificate: pair.certificate, key: pair.key, obtainedAt: '2030-01-01T00:00:00Z' }
  const { state, asked, certificates } = setUp({ keep: true, kept: new Map([[OWN, pem]]) })
  state.away = true
  expect(await certificates.contextFor(SERVER_NAME)).toBeDefined()
  expect(asked).toEqual([])
})

test('a certificate of a tunnel that was deleted meanwhile is deleted at the start', () => {
  const pem = { certificate: pair.certificate, key: pair.key, obtainedAt: '2030-01-01T00:00:00Z' }
  const { kept } = setUp({
    keep: true,
    kept: new Map([
      [`tunnel-${'f'.repeat(16)}-certificate`, pem],
      [OWN, pem],
    ]),
  })
  expect([...kept.keys()]).toEqual([OWN])
})
