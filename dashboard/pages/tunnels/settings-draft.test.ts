import { expect, test } from 'vitest'
import { changesOf, draftOf } from './settings-draft.ts'
import { withLocalPort } from './local-port.ts'

const tunnel = {
  name: 'web',
  config: {
    ...{ httpsOnly: false, allowCorsPreflight: false, forwardToOtherHosts: false, authMode: 'both' as const, target: undefined },
    ...{ sshIPWhitelist: [], ingressIPWhitelist: ['203.0.113.0/24', '2001:db8::/32'], authorizedKeys: [] },
    liveHeaderModifications: [{ name: 'X-A', value: '1', type: 'request' as const }],
  },
}
const draft = draftOf(tunnel)

test.each([
  ['nothing', {}, undefined],
  ['only white space in a list', { ingressIPWhitelist: ' 203.0.113.0/24\n\n2001:db8::/32 \n' }, undefined],
  ['the name', { name: 'shop' }, { name: 'shop' }],
  ['a switch', { httpsOnly: true }, { config: { httpsOnly: true } }],
  ['a list, replaced whole', { ingressIPWhitelist: '192.0.2.1' }, { config: { ingressIPWhitelist: ['192.0.2.1'] } }],
  ['an empty target', { target: ' ' }, undefined],
  ['a target', { target: 'localhost:80' }, { config: { target: 'localhost:80' } }],
  ['headers', { headers: [] }, { config: { liveHeaderModifications: [] } }],
])('the patch has %s', (_what, change, patch) => {
  expect(changesOf(tunnel, { ...draft, ...change })).toEqual(patch)
})

test('removing a target restores its default', () => {
  const before = { ...tunnel, config: { ...tunnel.config, target: 'localhost:80' } }
  expect(changesOf(before, { ...draftOf(before), target: '' })).toEqual({ config: { target: null } })
})

test.each([
  ['8080', 'ssh -R a:80:localhost:8080 a@b'],
  [' 8080 ', 'ssh -R a:80:localhost:8080 a@b'],
  ['', 'ssh -R a:80:localhost:3000 a@b'],
  ['65536', 'ssh -R a:80:localhost:3000 a@b'],
  ['1; rm -rf ~', 'ssh -R a:80:localhost:3000 a@b'],
])('the command forwards to the local port %j', (port, command) => {
  expect(withLocalPort('ssh -R a:80:localhost:3000 a@b', port)).toBe(command)
})
