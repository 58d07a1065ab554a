import { expect, test } from 'vitest'
import { tunnel, tunnelWebhook } from '../test/builders/resources.ts'
import { disabledReasonOf, type ObservedWebhook, webhookState } from './active-webhooks.ts'
import { createAddressGuard } from './outside-addresses.ts'

const guard = createAddressGuard({ privateAddresses: false })
const mine = tunnelWebhook({ metadata: { name: 'mine' } })
const older = Array.from({ length: 10 }, (_, index) =>
  tunnelWebhook({ metadata: { name: `older-${index}`, creationTimestamp: '2026-01-01T11:00:00Z' } }),
)
const owner = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid: 'uid-of-an-earlier-one' }
const disabled = { disabledReason: 'receiver_gone', disabledGeneration: 1 } as const
const of = (url: string) => ({ webhook: tunnelWebhook({ spec: { url } }) })

test.each<{ does: string; seen: Partial<ObservedWebhook>; reason: string }>([
  { does: 'is active', seen: {}, reason: 'Active' },
  { does: 'without a tunnel is not active', seen: { tunnel: undefined }, reason: 'TunnelMissing' },
  {
    does: 'of an earlier tunnel gets no events of a later one',
    ...{ seen: { webhook: tunnelWebhook({ metadata: { ownerReferences: [owner] } }) }, reason: 'TunnelMissing' },
  },
  { does: 'that is disabled is not active', seen: { webhook: tunnelWebhook({ spec: { enabled: false } }) }, reason: 'Disabled' },
  {
    does: 'whose receiver is gone is not active',
    seen: { webhook: tunnelWebhook({ status: disabled }) },
    reason: 'ReceiverGone',
  },
  {
    does: 'is active again after a change that enables it',
    ...{ seen: { webhook: tunnelWebhook({ metadata: { generation: 2 }, status: disabled }) }, reason: 'Active' },
  },
  {
    does: 'stays disabled after another change',
    seen: { webhook: tunnelWebhook({ metadata: { generation: 2 }, spec: { enabled: false }, status: disabled }) },
    reason: 'ReceiverGone',
  },
  { does: 'with a private address is not active', seen: of('http://10.0.0.1/'), reason: 'AddressRefused' },
  { does: 'with a decimal address is not active', seen: of('http://2130706433/'), reason: 'AddressRefused' },
  { does: 'with the port of another service is not active', seen: of('https://example.com:22/'), reason: 'AddressRefused' },
  { does: 'with ten older ones is not active', seen: { webhook: mine, named: [...older, mine] }, reason: 'TooManyWebhooks' },
  { does: 'with nine older ones is active', seen: { webhook: mine, named: [...older.slice(1), mine] }, reason: 'Active' },
])('a webhook $does', ({ seen, reason }) => {
  const webhook = tunnelWebhook()
  const state = webhookState({ webhook, tunnel: tunnel(), named: [webhook], guard, ...seen })
  expect([state.reason, state.isActive]).toEqual([reason, reason === 'Active'])
})

test('a webhook that was never disabled has no reason', () => expect(disabledReasonOf(tunnelWebhook())).toBeUndefined())
