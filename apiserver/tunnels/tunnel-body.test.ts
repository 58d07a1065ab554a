import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PatchTunnelBody } from './tunnel-body.ts'

/** Names of which each engine of regular expressions has to think the same, with Unicode in mind or without. */
const NAMES = { right: ['a', 'p', 'Cc', 'web {1}', 'é', '海', '\u{a0}'], wrong: ['', '\0', 'a\n', '\u{7f}', '\u{85}'] }

const { components } = JSON.parse(await readFile(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as {
  components: { schemas: Record<string, { properties: { name: { pattern: string } } }> }
}

test.each(['CreateTunnel', 'PatchTunnel'])('the published pattern of a name in %s is equivalent in every client', (id) => {
  const pattern = components.schemas[id]?.properties.name.pattern ?? expect.fail('the schema has no pattern')
  for (const flags of ['', 'u', 'v']) {
    const published = new RegExp(pattern, flags)
    for (const name of NAMES.right) expect([name, flags, published.test(name)]).toEqual([name, flags, true])
    for (const name of NAMES.wrong) expect([name, flags, published.test(name)]).toEqual([name, flags, false])
  }
})

test('a name has at most 63 characters of any Unicode plane', () => {
  const named = (name: string) => PatchTunnelBody.safeParse({ name }).success
  expect([named('🚢'.repeat(63)), named('🚢'.repeat(64)), named('x'.repeat(64))]).toEqual([true, false, false])
})
