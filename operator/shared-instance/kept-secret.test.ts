import { expect, test } from 'vitest'
import fc from 'fast-check'
import type { Secret } from '../../crds/core.ts'
import { claimedStatus, sharedInstance } from '../../test/builders/resources.ts'
import { encodeSecret } from '../secret-data.ts'
import { checkSecret, tenantName, suffixOf, tenantSuffix } from './kept-secret.ts'
import { IDENTIFIER } from '../../crds/shared-instance.ts'

const CA = 'the CA'
const ID = '7c1d3b52-0d3c-4a77-9a31-0f5f0c3f8f11'
const OTHER_ID = '7c1d3b52-0d3c-4a77-9a31-0f5f0c3f8f12'
const status = { ...claimedStatus, serverRef: { name: 'server-1' }, passwordId: ID }
const instance = sharedInstance({ status })
const { name } = claimedStatus

const texts = {
  ...{ type: 'postgresql', provider: 'mooring', host: '2001:db8::1', port: '5432', username: name, database: name },
  ...{ password: 'p', uri: `postgresql://${name}:p@[2001:db8::1]:5432/${name}?sslmode=require`, 'ca.crt': CA },
}
const metadata = {
  ...{ name: 'i-1-credentials', uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '' },
  labels: { 'app.kubernetes.io/managed-by': 'mooring', 'mooring.dev/server': 'server-1' },
  annotations: { 'mooring.dev/password-version': '1', 'mooring.dev/password-id': ID },
  ownerReferences: [{ apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', name: 'i-1', uid: instance.metadata.uid }],
}

function secret(change: Readonly<Record<string, string>> = {}, marks: object = {}): Secret {
  const data = encodeSecret({ ...texts, ...change })
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { ...metadata, ...marks }, data }
}

const other = [{ ...metadata.ownerReferences[0], uid: 'another' }]

test.each([
  { is: 'sound as it was written', given: secret(), result: 'tidy' },
  { is: 'damaged without a password', given: secret({ password: '' }), result: 'damaged' },
  { is: 'damaged with another password than its URI', given: secret({ password: 'q' }), result: 'damaged' },
  { is: 'damaged with an invalid URI', given: secret({ uri: 'guess' }), result: 'damaged' },
  {
    is: 'damaged with a URI that is badly encoded',
    given: secret({ uri: `postgresql://${name}:%E0@h:1/x` }),
    result: 'damaged',
  },
  { is: 'damaged with another user', given: secret({ username: 'x' }), result: 'damaged' },
  { is: 'damaged with another database than the status', given: secret({ database: 'x', username: 'x' }), result: 'damaged' },
  { is: 'untidy with another host', given: secret({ host: 'h' }), result: 'untidy' },
  { is: 'untidy with another CA', given: secret({ 'ca.crt': '' }), result: 'untidy' },
  { is: 'untidy without its provider', given: secret({ provider: '' }), result: 'untidy' },
  { is: 'untidy without its labels', given: secret({}, { labels: {} }), result: 'untidy' },
  { is: 'untidy without its annotations', given: secret({}, { annotations: {} }), result: 'untidy' },
  { is: 'untidy without its owner', given: secret({}, { ownerReferences: [] }), result: 'untidy' },
  { is: 'foreign with another owner', given: secret({}, { ownerReferences: other }), result: 'foreign' },
  { is: 'foreign without owner and labels', given: secret({}, { ownerReferences: [], labels: {} }), result: 'foreign' },
])('a Secret is $is', ({ given, result }) => {
  const found = checkSecret(given, { owner: instance, ca: CA })
  expect(typeof found === 'object' ? (found.tidy ? 'tidy' : 'untidy') : found).toBe(result)
})

const version = { 'mooring.dev/password-version': '1' }

test.each([
  { is: 'that of its annotation', known: ID, id: OTHER_ID, result: { passwordId: OTHER_ID, tidy: true } },
  { is: 'that in force when the annotation is gone', known: ID, id: undefined, result: { passwordId: ID, tidy: false } },
  { is: 'that in force when the annotation is no UUID', known: ID, id: 'x'.repeat(500), result: { passwordId: ID, tidy: false } },
  { is: 'absent in an instance from before ids', known: undefined, id: undefined, result: { passwordId: undefined, tidy: true } },
])('the id of a password is $is', ({ known, id, result }) => {
  const notes = { ...version, ...(id !== undefined && { 'mooring.dev/password-id': id }) }
  const found = checkSecret(secret({}, { annotations: notes }), {
    owner: sharedInstance({ status: { ...status, passwordId: known } }),
    ca: CA,
  })
  expect(found).toMatchObject(result)
})

const unclaimed = sharedInstance()
const own = tenantName('another-identifier', unclaimed.metadata.uid)

test.each([
  { is: 'sound under a name of its own', database: own, owners: metadata.ownerReferences, result: 'sound' },
  {
    is: 'damaged under the name of another tenant’s database',
    database: name,
    owners: metadata.ownerReferences,
    result: 'damaged',
  },
  { is: 'damaged under that name without an owner', database: name, owners: [], result: 'damaged' },
  { is: 'damaged under a name of no tenant', database: 'postgres', owners: [], result: 'damaged' },
])('before the status names the database, a Secret is $is', ({ database, owners, result }) => {
  const uri = `postgresql://${database}:p@h:5432/${database}`
  const given = secret({ database, username: database, uri, host: 'h' }, { ownerReferences: owners })
  const found = checkSecret(given, { owner: unclaimed, ca: CA })
  expect(typeof found === 'object' ? 'sound' : found).toBe(result)
})

const uid = '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10'

test.each([
  ['PR #42: Fix/login', 'pr42fixlogin'],
  ['9lives', 'd9lives'],
  ['a', 'a'],
  ['feature/a-very-long-branch-name', 'featureavery'],
])('the identifier %j gives the stem %j', (identifier, stem) => {
  expect(tenantName(identifier, uid)).toBe(stem + tenantSuffix(uid))
})

test('every allowed identifier gives a name that needs no quoting and can be traced to its uid', () => {
  fc.assert(
    fc.property(fc.stringMatching(IDENTIFIER), fc.uuid(), (identifier, id) => {
      const name = tenantName(identifier, id)
      expect(name).toMatch(/^[a-z][a-z0-9]{9,21}$/)
      expect(suffixOf(name)).toBe(tenantSuffix(id))
    }),
  )
})

test.each(['postgres', 'pool_0123456789abcdef', 'template1', 'making_00', 'trash_00'])(
  'the name %s belongs to no tenant',
  (name) => {
    expect(suffixOf(name)).toBeUndefined()
  },
)
