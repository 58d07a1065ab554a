import { expect, test } from 'vitest'
import { sourceKey } from './source-key.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::7', '2001:db8:0:0'],
  ['2001:db8:1:2::7', '2001:db8:1:2'],
])('%s is counted under %s', (address, key) => {
  expect(sourceKey(address)).toBe(key)
})
