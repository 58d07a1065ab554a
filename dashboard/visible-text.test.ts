import { expect, test } from 'vitest'
import { visible } from './visible-text.ts'

test.each([
  ['invoice\u202efdp.exe', 'invoice‹U+202E›fdp.exe'],
  ['\u001b[31mred\u0000', '‹U+001B›[31mred‹U+0000›'],
  ['a\u2066b\u2069\u200b', 'a‹U+2066›b‹U+2069›‹U+200B›'],
  ['line\n\tשלום 👩‍🔧', 'line\n\tשלום 👩‍🔧'],
])('%j is shown as %j', (text, shown) => {
  expect(visible(text)).toBe(shown)
})
