import { describe, expect, test } from 'vitest'
import { HeaderModification, isTargetAllowed, TunnelConfig } from './tunnel-config.ts'
import { Tunnel } from './tunnel.ts'

describe('the target of a tunnel without forwardToOtherHosts', () => {
  test.each([
    ['localhost:80', true],
    ['LocalHost:80', true],
    ['127.9.9.9:80', true],
    ['[::1]:80', true],
    ['192.168.1.1:80', false],
    ['127.0.0.1.example.com:80', false],
    ['127.0.0.256:80', false],
    ['localhost.example.com:80', false],
    ['0.0.0.0:80', false],
    ['[::2]:80', false],
    ['[::ffff:127.0.0.1]:80', false],
  ])('%s is the client’s own machine: %s', (target, own) => {
    expect(isTargetAllowed({ target, forwardToOtherHosts: false })).toBe(own)
    expect(isTargetAllowed({ target, forwardToOtherHosts: true })).toBe(true)
  })

  test('breaks a rule that names its field', () => {
    const spec = { regionId: 1, config: TunnelConfig.parse({ target: 'db.internal:5432' }) }
    expect(Tunnel.rules.filter(({ holds }) => !holds(spec as never, { name: 'web' })).map(({ field }) => field)).toEqual([
      'spec.config.target',
    ])
  })
})

test.each([
  ['', true],
  ['x', true],
  ['a b\tc', true],
  ['max-age=1; x="\xe9\xa0"', true],
  [' ', false],
  ['\t', false],
  [' x', false],
  ['x ', false],
  ['\tx', false],
  ['x\t', false],
  ['x\n', false],
  ['a\r\nb', false],
  ['a\0b', false],
  ['\u20ac', false],
  [`${'x '.repeat(511)}x`, true],
  [' '.repeat(1024), false],
])('%j is a valid header value: %s', (value, is) => {
  expect(HeaderModification.safeParse({ name: 'X-A', value, type: 'request' }).success).toBe(is)
})
