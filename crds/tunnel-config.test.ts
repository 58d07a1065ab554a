import { describe, expect, test } from 'vitest'
import { isTargetAllowed, TunnelConfig } from './tunnel-config.ts'
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

  test('is refused with its field named', () => {
    const spec = { regionId: 1, config: TunnelConfig.parse({ target: 'db.internal:5432' }) }
    expect(Tunnel.rules.filter(({ holds }) => !holds(spec as never, { name: 'web' })).map(({ field }) => field)).toEqual([
      'spec.config.target',
    ])
  })
})
