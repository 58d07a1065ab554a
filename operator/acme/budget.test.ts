import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { budgetOf, createCertificateBudget, registeredDomain } from './budget.ts'

const HOUR = 3_600_000
const settings = {
  directoryUrl: 'https://ca.example/dir',
  agreeToTerms: true,
  accountKeyVersion: 1,
  revokeOnDelete: false,
  challenge: 'http-01',
  nameservers: [],
  check: true,
} as const

async function openBudget() {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  let time = Date.UTC(2026, 0, 1)
  const now = () => new Date(time)
  const take = (budget: ReturnType<typeof createCertificateBudget>, name: string, about: object = {}) =>
    budget.take({
      settings: { ...settings, weeklyBudget: 4 },
      ...{ identifier: `${name}.tunnels.example.org`, organization: 'acme', isShared: false, ...about },
    })
  return { open: () => createCertificateBudget({ store, now }), take, pass: (ms: number) => (time += ms), ...temporary }
}

test('a budget counts the names of a registered domain, outlives the operator, and renews itself after 7 days', async () => {
  await using at = await openBudget()
  const first = at.open()
  const taken = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => at.take(first, name)))
  expect(taken.map((refusal) => refusal === undefined)).toEqual([true, true, true, true, false])
  const budget = at.open()
  expect(await budget.left({ ...settings, weeklyBudget: 4 }, 'example.org')).toBe(0)
  const refused = await at.take(budget, 'f')
  expect(refused?.message).toBe('the budget of 4 new certificates within 7 days for example.org is used up')
  at.pass(7 * 24 * HOUR + 2 * HOUR)
  expect(await at.take(at.open(), 'g')).toBeUndefined()
})

test('one of several organizations takes at most half', async () => {
  await using at = await openBudget()
  const budget = at.open()
  const of = (organization: string) => at.take(budget, 'x', { organization, isShared: true })
  expect([await of('acme'), await of('acme')]).toEqual([undefined, undefined])
  expect((await of('acme'))?.message).toBe(
    'the budget of the organization, of 2 new certificates within 7 days for example.org is used up',
  )
  expect(await of('other')).toBeUndefined()
})

test('a name below a public suffix is a registered domain of its own, without a limit', async () => {
  await using at = await openBudget()
  const budget = at.open()
  for (let index = 0; index < 6; index += 1) {
    expect(await at.take(budget, 'x', { identifier: `n${index}.github.io` })).toBeUndefined()
  }
})

test.each([
  ['a.b.example.org', 'example.org'],
  ['a.example.co.uk', 'example.co.uk'],
  ['a.github.io', 'a.github.io'],
])('the registered domain of %s is %s', (name, domain) => {
  expect(registeredDomain(name)).toBe(domain)
})

test.each([
  ['https://acme-v02.api.letsencrypt.org/directory', 40],
  ['https://127.0.0.1:14000/dir', 100_000],
  ['https://acme.example/dir', 100_000],
  ['https://evil-api.letsencrypt.org.example/dir', 100_000],
])('the budget of %s is %i', (directoryUrl, budget) => {
  expect(budgetOf({ ...settings, directoryUrl })).toBe(budget)
})
