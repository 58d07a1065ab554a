import { expect, onTestFinished, test, vi } from 'vitest'
import type { Secret } from '../crds/core.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { createCa, issueCertificate } from '../operator/certificates/local-ca.ts'
import { encodeSecret } from '../operator/secret-data.ts'
import { StoreError, type Key, type Store } from '../store/port.ts'
import type { Pem } from './pems.ts'
import { createUnknownHostsCertificate } from './unknown-hosts.ts'

const NAME = 'endpoint-main-strangers'
const [FIRST, SECOND] = ['2030-01-01T00:00:00.000Z', '2030-03-01T00:00:00.000Z']
const soon = { timeout: 60_000, interval: 5 }

const now = new Date()
const ca = await createCa(now)
const issue = () => issueCertificate({ ca, names: ['*.t.test', 't.test'], now })
const [one, two] = [await issue(), await issue()]
const kept = (pem: Partial<Pem> = {}): Pem => ({ ...one, obtainedAt: FIRST, ...pem })

interface Options {
  readonly said?: string
  readonly snapshot?: ReadonlyMap<string, Pem>
}

/** Edge whose endpoint has the status that a test sets, and an API with one Secret. */
function setUp({ said, snapshot = new Map() }: Options = {}) {
  const state = { said, away: false, data: encodeSecret({ 'tls.crt': one.certificate, 'tls.key': one.key }) }
  const asked: string[] = []
  const get = (_kind: unknown, { name }: Key) => {
    asked.push(name)
    if (state.away) return Promise.reject(new StoreError('unavailable', 'away'))
    return Promise.resolve({ metadata: { labels: { 'mooring.dev/endpoint': 'main' } }, data: state.data } as unknown as Secret)
  }
  const pems = new Map(snapshot)
  const listeners = new Set<(key: Key) => void>()
  const warn = vi.fn()
  const unknownHosts = createUnknownHostsCertificate({
    store: { get: get as Store['get'] },
    endpoint: 'main',
    endpoints: {
      get: () =>
        (state.said === undefined ? {} : { status: { strangersCertificate: { notBefore: state.said } } }) as TunnelEndpoint,
      onChange(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    kept: { all: () => pems, keep: (name, pem) => (pem ? pems.set(name, pem) : pems.delete(name)) },
    log: { info: vi.fn(), warn },
  })
  onTestFinished(() => unknownHosts[Symbol.dispose]())
  const renewed = vi.fn()
  unknownHosts.onRenew(renewed)
  return {
    ...{ unknownHosts, renewed, warn, asked, pems, state },
    say: (changes: Partial<typeof state>) => {
      Object.assign(state, changes)
      for (const listener of listeners) listener({ name: 'main' })
    },
  }
}

test('without a certificate in the endpoint’s status, none is fetched or served', () => {
  const { unknownHosts, asked, say } = setUp()
  say({})
  expect([unknownHosts.current(), asked]).toEqual([undefined, []])
})

test('the certificate is fetched once when the status reports it, and stored', async () => {
  const { unknownHosts, renewed, asked, pems, say } = setUp({ said: FIRST })
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledOnce(), soon)
  for (let look = 0; look < 3; look += 1) say({})
  expect(unknownHosts.current()).toMatchObject(one)
  expect([asked, pems]).toEqual([[NAME], new Map([[NAME, kept()]])])
})

test('a new certificate replaces the old one when the status reports it', async () => {
  const { unknownHosts, renewed, say } = setUp({ said: FIRST })
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledOnce(), soon)
  say({ said: SECOND, data: encodeSecret({ 'tls.crt': two.certificate, 'tls.key': two.key }) })
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledTimes(2), soon)
  expect(unknownHosts.current()).toMatchObject(two)
})

test('the stored certificate needs no API, and other stored certificates are not used', () => {
  const { unknownHosts, asked, pems } = setUp({
    said: FIRST,
    snapshot: new Map([
      ['tunnel-a-certificate', kept()],
      [NAME, kept()],
    ]),
  })
  expect([unknownHosts.current(), asked, pems.size]).toEqual([kept(), [], 2])
})

test('while the API is away the previous certificate stays in use; the new one is fetched afterwards', async () => {
  const { unknownHosts, asked, renewed, say, state } = setUp({ said: FIRST, snapshot: new Map([[NAME, kept()]]) })
  say({ said: SECOND, away: true })
  await vi.waitFor(() => expect(asked).toEqual([NAME]), soon)
  expect(unknownHosts.current()).toEqual(kept())
  state.away = false
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledOnce(), soon)
  expect(unknownHosts.current()).toEqual(kept({ obtainedAt: SECOND }))
})

test('an unusable certificate is neither used nor stored: the previous one stays in use', async () => {
  const { unknownHosts, warn, renewed, pems, say, state } = setUp({ said: FIRST, snapshot: new Map([[NAME, kept()]]) })
  say({ said: SECOND, data: encodeSecret({ 'tls.crt': 'no', 'tls.key': 'no' }) })
  await vi.waitFor(() => expect(warn).toHaveBeenCalled(), soon)
  expect([unknownHosts.current(), pems.get(NAME)]).toEqual([kept(), kept()])
  state.data = encodeSecret({ 'tls.crt': two.certificate, 'tls.key': two.key })
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledOnce(), soon)
  expect(pems.get(NAME)).toEqual({ ...two, obtainedAt: SECOND })
})

test('an unusable stored certificate is fetched again', async () => {
  const { unknownHosts, renewed } = setUp({ said: FIRST, snapshot: new Map([[NAME, kept({ key: 'no' })]]) })
  await vi.waitFor(() => expect(renewed).toHaveBeenCalledOnce(), soon)
  expect(unknownHosts.current()).toEqual(kept())
})
