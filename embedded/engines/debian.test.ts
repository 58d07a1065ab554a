import { expect, test } from 'vitest'
import { mirrorsIn } from './debian.ts'
import { reasonIn } from './tools.ts'

test.each([
  {
    what: 'a mirror and its security archive',
    output: 'http://a.example/tools/\nhttp://mirror.example/debian/\nhttp://mirror.example/debian-security/\n',
    mirrors: { main: 'http://mirror.example/debian', security: 'http://mirror.example/debian-security' },
  },
  {
    what: 'a mirror alone, beside which the security archive is expected',
    output: 'http://mirror.example/debian\n',
    mirrors: { main: 'http://mirror.example/debian', security: 'http://mirror.example/debian-security' },
  },
  { what: 'no mirror of Debian', output: 'http://mirror.example/ubuntu/\n', mirrors: undefined },
  { what: 'nothing', output: '', mirrors: undefined },
])('the sources of a machine with $what', ({ output, mirrors }) => {
  expect(mirrorsIn(output)).toEqual(mirrors)
})

test.each([
  { output: 'Reading\nE: Version 2 of mariadb was not found\nDone\n', reason: 'E: Version 2 of mariadb was not found' },
  { output: '\u001b[1m[ERROR]\u001b[m Failed to execute goal\n[ERROR] -> [Help 1]\n', reason: '[ERROR] Failed to execute goal' },
  { output: 'ERROR: No matching distribution found for x\n', reason: 'ERROR: No matching distribution found for x' },
  { output: 'one\n two \n\n', reason: 'two' },
  { output: '\n', reason: 'it printed nothing' },
])('the reason of a failure is $reason', ({ output, reason }) => {
  expect(reasonIn(output)).toBe(reason)
})
