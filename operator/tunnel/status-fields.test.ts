import { expect, test } from 'vitest'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import { tunnel } from '../../test/builders/resources.ts'
import { conditionsOf } from './status-fields.ts'

const now = Date.parse('2026-01-02T03:04:05Z')
const withConfig = (config: Partial<TunnelConfig>) =>
  conditionsOf({ tunnel: tunnel({ spec: { regionId: 1, config: TunnelConfig.parse(config) } }), now }, undefined)

test('a stored range with address bits after its prefix is a condition that names the entry', () => {
  const conditions = withConfig({ sshIPWhitelist: ['::1'], ingressIPWhitelist: ['192.0.2.0/24', '1.2.3.4/0'] })
  expect(conditions).toMatchObject([
    {
      type: 'AddressesUsable',
      status: 'False',
      reason: 'UnusableRange',
      message:
        'an entry matches no address: spec.config.ingressIPWhitelist[1] has address bits after its prefix: write 1.2.3.4, or 0.0.0.0/0 for all addresses',
    },
  ])
})

test('a tunnel with usable settings has no condition about them', () => {
  expect(withConfig({ sshIPWhitelist: ['::1'], ingressIPWhitelist: ['0.0.0.0/0'] })).toEqual([])
})
