import { expect, test } from 'vitest'
import { isTestCa } from './challenge-check.ts'

test.each([
  ['https://127.0.0.1:14000/dir', true],
  ['https://10.1.2.3/dir', true],
  ['https://[::1]:14000/dir', true],
  ['https://[fd00::7]:14000/dir', true],
  ['https://pebble.acme.svc:14000/dir', true],
  ['https://pebble.acme.svc.cluster.local/dir', true],
  ['https://ca.test/dir', true],
  ['https://acme-v02.api.letsencrypt.org/directory', false],
  ['https://10.evil.example/dir', false],
  ['https://svc.example.org/dir', false],
  ['https://[2001:db8::1]/dir', false],
])('%s is the directory of a test CA: %s', (url, isTest) => {
  expect(isTestCa(url)).toBe(isTest)
})
