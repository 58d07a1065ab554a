import { expect, test } from 'vitest'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import { tunnelEndpoint } from '../../test/builders/resources.ts'
import type { RecordState } from '../acme/dns/record-watch.ts'
import { acmeStatusOf } from './acme-status.ts'

const record = { name: '_validation-persist.t.example', value: 'ca.example; accounturi=x' }
const problem = { reason: 'DnsRecordMissing', message: 'DNS has no such record' }

const acmeWith = (state: RecordState | undefined) => ({
  recordState: () => state,
  thumbprint: () => Promise.resolve('thumbprint'),
  accountKeyVersion: () => Promise.resolve(2),
})

function endpoint(challenge: AcmeSettings['challenge'], { agreeToTerms = true, reason = 'Serving' } = {}) {
  const acme = {
    directoryUrl: 'https://ca.example/dir',
    accountKeyVersion: 2,
    revokeOnDelete: false,
    nameservers: [],
    check: true,
  }
  const stamp = { lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 }
  return tunnelEndpoint({
    spec: { issuer: 'acme', acme: { ...acme, challenge, agreeToTerms } },
    status: { acmeRecord: record, conditions: [{ ...stamp, type: 'Ready', status: 'False', reason, message: problem.message }] },
  })
}

const ABSENT = { acmeThumbprint: null, acmeAccountKeyVersion: null, acmeRecord: null }
const OF_ACCOUNT = { ...ABSENT, acmeAccountKeyVersion: 2 }

test.each([
  {
    what: 'http-01 shows the thumbprint for the edges',
    challenge: 'http-01',
    fields: { ...OF_ACCOUNT, acmeThumbprint: 'thumbprint' },
  },
  {
    what: 'tls-alpn-01 shows the thumbprint for the edges',
    challenge: 'tls-alpn-01',
    fields: { ...OF_ACCOUNT, acmeThumbprint: 'thumbprint' },
  },
  { what: 'dns-01 shows neither thumbprint nor record', challenge: 'dns-01', fields: OF_ACCOUNT },
] as const)('$what', async ({ challenge, fields }) => {
  const status = await acmeStatusOf(endpoint(challenge), acmeWith({ record, problem }))
  expect(status).toEqual({ fields, problem: undefined })
})

test.each([
  { what: 'shows the record and its problem', state: { record, problem }, has: { record, problem } },
  { what: 'removes a record that is unknown', state: { record: undefined, problem }, has: { record: null, problem } },
])('dns-persist-01 $what', async ({ state, has }) => {
  const { fields, problem: found } = await acmeStatusOf(endpoint('dns-persist-01'), acmeWith(state))
  expect({ record: fields.acmeRecord, problem: found }).toEqual(has)
  expect(fields).toMatchObject({ acmeThumbprint: null, acmeAccountKeyVersion: 2 })
})

test.each([
  { what: 'keeps', reason: 'DnsRecordMissing', kept: problem },
  { what: 'keeps', reason: 'AccountMissing', kept: { ...problem, reason: 'AccountMissing' } },
  { what: 'drops', reason: 'Serving', kept: undefined },
])('before the first check, dns-persist-01 keeps the record and $what the reason $reason', async ({ reason, kept }) => {
  const status = await acmeStatusOf(endpoint('dns-persist-01', { reason }), acmeWith(undefined))
  expect(status.fields.acmeRecord).toBeUndefined()
  if (kept) expect(status.problem).toMatchObject(kept)
  else expect(status.problem).toBeUndefined()
})

test('without accepted terms, or with another issuer, the status has no field of ACME', async () => {
  const acme = acmeWith({ record, problem })
  const expected = { fields: ABSENT, problem: undefined }
  expect(await acmeStatusOf(endpoint('dns-persist-01', { agreeToTerms: false }), acme)).toEqual(expected)
  expect(await acmeStatusOf(tunnelEndpoint(), acme)).toEqual(expected)
})
