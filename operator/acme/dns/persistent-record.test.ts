import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  hashedUris,
  IssuerNames,
  isParameterValue,
  issuersIn,
  type Permission,
  recordFor,
  recordProblem,
} from './persistent-record.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const SECONDS = NOW / 1_000
const ACCOUNT = 'https://ca.example/acct/123'
const WILDCARD: Permission = { identifier: '*.t.example', issuers: ['authority.example', 'ca.example'], accountUris: [ACCOUNT] }
const SINGLE: Permission = { ...WILDCARD, identifier: '0123456789abcdef.t.example' }
const OWN = `authority.example; accounturi=${ACCOUNT}`

test('the record of a wildcard certificate is that of its domain, with a policy', () => {
  expect(recordFor(WILDCARD)).toEqual({ name: '_validation-persist.t.example', value: `${OWN}; policy=wildcard` })
})

test('the record of single certificates is a wildcard of DNS, without a policy', () => {
  expect(recordFor(SINGLE)).toEqual({ name: '*.t.example', value: OWN })
})

test.each([
  { values: [`${OWN}; policy=wildcard`], problem: undefined },
  { values: [`ca.example;accounturi=${ACCOUNT};policy=WildCard`], problem: undefined },
  { values: [` authority.example ;  Policy = wildcard ;\tAccountUri = ${ACCOUNT} `], problem: undefined },
  { values: ['another.example; accounturi=x', `${OWN}; policy=wildcard; unknown=x`], problem: undefined },
  { values: [`${OWN}; policy=wildcard; persistUntil=${SECONDS + 1}`], problem: undefined },
  { values: [], problem: 'has no such record' },
  { values: ['v=spf1 -all', ''], problem: 'has only values for other purposes' },
  { values: [`AUTHORITY.example; accounturi=${ACCOUNT}; policy=wildcard`], problem: 'has only values for other purposes' },
  { values: ['authority.example; policy=wildcard'], problem: 'which lacks accounturi' },
  {
    values: [`authority.example; accounturi=${ACCOUNT}4; policy=wildcard`],
    problem: 'whose accounturi is that of another account',
  },
  { values: [OWN], problem: 'which lacks policy=wildcard' },
  { values: [`${OWN}; policy=other`], problem: 'which lacks policy=wildcard' },
  { values: [`${OWN}; policy=wildcard; persistUntil=${SECONDS - 1}`], problem: 'whose persistUntil is over' },
  { values: [`${OWN}; policy=wildcard; persistUntil=soon`], problem: 'whose persistUntil is not a number of seconds' },
  { values: [`${OWN}; policy=wildcard;`], problem: 'where each semicolon must precede a parameter' },
  { values: [`${OWN}; policy=wildcard; Policy=wildcard`], problem: 'which has policy twice' },
  { values: [`${OWN}; policy=wild card`], problem: 'whose policy has a character that is not allowed there' },
])('for a wildcard certificate the values $values have the problem: $problem', ({ values, problem }) => {
  const found = recordProblem(values, WILDCARD, NOW)
  if (problem === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(problem)
})

test('a single certificate needs no policy', () => {
  expect(recordProblem([OWN], SINGLE, NOW)).toBeUndefined()
})

test('a value in a message has neither control characters nor more than 200 characters', () => {
  const problem = recordProblem([`authority.example; x=\u001b[31m${'y'.repeat(300)}`], SINGLE, NOW)
  expect(problem).toMatch(/^has the value "authority\.example; x=\?\[31my{170,180}", whose x has a character/)
})

test('every text is read without a failure, and the record that is shown always permits', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom('a', '=', ';', ' ', '\t', '"') }).map((tail) => `authority.example${tail}`),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), (values) => {
      expect(recordProblem(values, WILDCARD, NOW)).not.toBe('')
      expect(recordProblem([...values, recordFor(WILDCARD).value], WILDCARD, NOW)).toBeUndefined()
    }),
  )
})

test.each([
  { names: ['letsencrypt.org'], isValid: true },
  { names: Array.from({ length: 10 }, (_, index) => `ca-${index}.example`), isValid: true },
  { names: Array.from({ length: 11 }, (_, index) => `ca-${index}.example`), isValid: false },
  { names: [], isValid: false },
  { names: ['CA.example'], isValid: false },
  { names: ['ca.example.'], isValid: false },
  { names: ['a;b'], isValid: false },
])('the issuer domain names $names of a challenge are valid: $isValid', ({ names, isValid }) => {
  expect(IssuerNames.safeParse(names).success).toBe(isValid)
})

test('of the names in a directory the valid ones count', () => {
  expect(issuersIn(['CA.example', 'ca.example', 'a b'])).toEqual(['ca.example'])
  expect(issuersIn(['a b'])).toBeUndefined()
  expect(issuersIn(undefined)).toBeUndefined()
})

test.each([
  [ACCOUNT, true],
  ['https://ca.example/a;b', false],
  ['https://ca.example/é', false],
])('the account URL %s can be in a record: %s', (url, isPossible) => {
  expect(isParameterValue(url)).toBe(isPossible)
})

test('from draft 02 on, the account is a hash for the domain, or one for all domains', () => {
  const thumbprint = 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'
  const account = { prefix: 'https://ca.example/account-hash/', thumbprint, accountUrl: ACCOUNT }
  const [forDomain, forAll] = hashedUris('*.example.com', account)
  expect([forDomain, forAll]).toEqual(
    ['5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-kw', 'NpDnSwUthQK8zCgFdefYxAdAVPnygMLbs9US6oO-5ug'].map(
      (hash) => `https://ca.example/account-hash/sha-256/${hash}`,
    ),
  )
  expect(hashedUris('a.example.com', account)[0]).toBe(forAll)
})
