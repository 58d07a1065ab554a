import { expect, test } from 'vitest'
import { type AcmeSettings, TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { tunnelEndpoint } from '../../../test/builders/resources.ts'
import { settableCache } from '../../../test/support/store/caches.ts'
import { AcmeError } from '../acme-error.ts'
import type { Inspected, Inspection } from './record-inspection.ts'
import { createRecordWatch } from './record-watch.ts'

const record = { name: '_validation-persist.t.example', value: 'ca.example; accounturi=x' }
const FOUND: Inspected = { record, problem: undefined, isKnown: true }
const MISSING: Inspected = { record, problem: 'it has no such record', isKnown: true }
const AWAY: Inspected = { record, problem: 'the DNS server is away', isKnown: false }
const unreachable = new AcmeError('acme_unreachable', 'no answer', { retryAfterMs: 3_600_000 })
const MINUTE = 60_000

const settings = (more: Partial<AcmeSettings> = {}): AcmeSettings => ({
  ...{ directoryUrl: 'https://ca.example/dir', agreeToTerms: true, challenge: 'dns-persist-01', accountKeyVersion: 1 },
  ...{ revokeOnDelete: false, nameservers: [], check: true },
  ...more,
})

function open() {
  const endpoints = settableCache(TunnelEndpoint)
  const changes: boolean[] = []
  const asked: Inspection[] = []
  let next: Inspected | Error = MISSING
  const watch = createRecordWatch({
    endpoints: endpoints.cache,
    inspect: (inspection) => {
      asked.push(inspection)
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next)
    },
    random: () => 1,
    onChange: (_endpoint, isFound) => changes.push(isFound),
  })
  let endpoint = tunnelEndpoint()
  let version = 0
  const put = (spec: Partial<TunnelEndpoint['spec']> = {}, status?: TunnelEndpoint['status']) => {
    const wildcard = { issuer: 'acme', certificates: 'wildcard', acme: settings(), domain: 't.example' } as const
    version += 1
    endpoint = tunnelEndpoint({ metadata: { resourceVersion: String(version) }, spec: { ...wildcard, ...spec }, status })
    endpoints.put(endpoint)
  }
  const check = (found: Inspected | Error) => {
    next = found
    return watch.reconcile(endpoint.metadata)
  }
  return { put, check, changes, asked, state: () => watch.stateOf(endpoint) }
}

test('a missing record is checked each 15 s, and one that is found, every 10 min; each change is announced once', async () => {
  const at = open()
  at.put()
  expect(at.state()).toBeUndefined()
  expect(await at.check(MISSING)).toMatchObject({ result: 'waiting', reason: 'DnsRecordMissing', requeueAfterMs: 15_000 })
  await at.check(MISSING)
  expect(at.state()).toEqual({ record, problem: { reason: 'DnsRecordMissing', message: 'it has no such record' } })
  expect(await at.check(FOUND)).toMatchObject({ result: 'settled', requeueAfterMs: 10 * MINUTE })
  expect(at.state()).toEqual({ record, problem: undefined })
  await at.check(FOUND)
  expect(at.changes).toEqual([false, true])
})

test('a DNS server that is away does not make a record missing that was there', async () => {
  const at = open()
  at.put()
  await at.check(AWAY)
  expect(at.state()?.problem?.message).toBe('the DNS server is away')
  await at.check(FOUND)
  expect(await at.check(AWAY)).toMatchObject({ result: 'waiting', requeueAfterMs: 15_000 })
  expect(at.state()?.problem).toBeUndefined()
  await at.check(MISSING)
  expect(at.state()?.problem?.message).toBe('it has no such record')
})

test('an account that cannot be made is reported; the wait doubles, and is at least what the CA asks for', async () => {
  const at = open()
  at.put()
  expect(await at.check(new AcmeError('acme_unreachable', 'no answer'))).toMatchObject({ requeueAfterMs: 30_000 })
  expect(await at.check(new AcmeError('acme_unreachable', 'no answer'))).toMatchObject({ requeueAfterMs: MINUTE })
  expect(at.state()).toEqual({ record: undefined, problem: { reason: 'AccountMissing', message: 'no answer' } })
  expect(await at.check(unreachable)).toMatchObject({ requeueAfterMs: 60 * MINUTE })
})

test('a CA that is away at the start leaves the record in the status alone', async () => {
  const at = open()
  at.put({}, { acmeRecord: record })
  await at.check(unreachable)
  expect(at.state()).toBeUndefined()
  expect(at.changes).toEqual([])
})

test('another failure is not swallowed', async () => {
  const at = open()
  at.put()
  await expect(at.check(new TypeError('a fault'))).rejects.toThrow('a fault')
})

test('after a change of the settings, the record is unknown until the next check', async () => {
  const at = open()
  at.put()
  await at.check(FOUND)
  at.put({ acme: settings({ directoryUrl: 'https://other.example/dir' }) }, { acmeRecord: record })
  expect(at.state()).toMatchObject({ record: undefined, problem: { reason: 'AccountMissing' } })
  await at.check(unreachable)
  expect(at.state()?.problem?.message).toBe('no answer')
})

test.each([
  { what: 'another challenge', spec: { acme: settings({ challenge: 'http-01' }) } },
  { what: 'another issuer', spec: { issuer: 'local' } as const },
  { what: 'no edges', spec: { replicas: 0 } },
  { what: 'terms that are not accepted', spec: { acme: settings({ agreeToTerms: false }) } },
])('an endpoint with $what has no record', async ({ spec }) => {
  const at = open()
  at.put()
  await at.check(MISSING)
  at.put(spec)
  expect(await at.check(MISSING)).toMatchObject({ result: 'settled', reason: 'NoRecord' })
  expect(at.state()).toBeUndefined()
  expect(at.asked).toHaveLength(1)
})

test('single certificates are checked by a hostname that stands for all', async () => {
  const at = open()
  at.put({ certificates: 'perTunnel' })
  await at.check(FOUND)
  at.put()
  await at.check(FOUND)
  expect(at.asked.map(({ identifier }) => identifier)).toEqual(['0123456789abcdef.t.example', '*.t.example'])
})
