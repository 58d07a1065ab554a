import { expect, test } from 'vitest'
import { createSignInLinks } from './sign-in-links.ts'

const codeOf = (link: string): string => link.replace('https://a:1/dashboard#code=', '')

test('the code of a link is valid once', () => {
  const links = createSignInLinks()
  const [one, two] = [codeOf(links.issue('https://a:1')), codeOf(links.issue('https://a:1'))]
  expect(one).toMatch(/^[\w-]{32}$/)
  expect([one, two, one, 'other', ''].map((code) => links.redeem(code))).toEqual([true, true, false, false, false])
})

test('a code is invalid after twelve hours', () => {
  let now = 0
  const links = createSignInLinks(() => now)
  const [one, two] = [codeOf(links.issue('https://a:1')), codeOf(links.issue('https://a:1'))]
  now = 12 * 3_600_000 - 1
  expect(links.redeem(one)).toBe(true)
  now += 1
  expect(links.redeem(two)).toBe(false)
})
