import { expect, test } from 'vitest'
import { ISSUED_PASSWORD, TunnelPassword } from '../../../crds/tunnel-password.ts'
import { tunnel, tunnelPassword } from '../../../test/builders/resources.ts'
import { settableCache } from '../../../test/support/store/caches.ts'
import { createPasswordLookup, deriveTunnelPassword, passwordView, randomTunnelPassword } from '../ssh-passwords.ts'

const MADE = '2026-01-01T12:00:00Z'
const earlier = { ownerReferences: [{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid: 'earlier' }] }

test.each([
  {
    does: 'that kubectl made for years ends after four hours',
    expiresAt: '2030-01-01T00:00:00Z',
    end: '2026-01-01T16:00:00.000Z',
  },
  { does: 'of four hours ends to the millisecond', expiresAt: '2026-01-01T16:00:00.789Z', end: '2026-01-01T16:00:00.789Z' },
])('a password $does', ({ expiresAt, end }) => {
  const view = passwordView(tunnelPassword({ metadata: { creationTimestamp: MADE }, spec: { expiresAt } }))
  expect(view).toMatchObject({ createdAt: '2026-01-01T12:00:00.000Z', expiresAt: end })
})

test('issued passwords have the form that the edge expects', () => {
  const derived = Array.from({ length: 20 }, (_, index) => deriveTunnelPassword(new Uint8Array(32), `salt-${index}`))
  for (const password of [...derived, randomTunnelPassword()]) expect(password).toMatch(ISSUED_PASSWORD)
})

test('the live passwords of a tunnel are its ten oldest that have not expired', () => {
  const passwords = settableCache(TunnelPassword)
  let now = new Date('2026-01-01T12:30:00Z')
  const { livePasswordsOf } = createPasswordLookup({ tunnelPasswords: passwords.cache, now: () => now })
  const names = () => livePasswordsOf(tunnel()).map(({ metadata }) => metadata.name)
  const ten = Array.from({ length: 10 }, (_, index) => `p${index}`)
  for (const name of [...ten, 'q']) passwords.put(tunnelPassword({ metadata: { name } }))
  passwords.put(tunnelPassword({ metadata: { name: 'a-of-shop' }, spec: { tunnelRef: { name: 'shop' } } }))
  passwords.put(tunnelPassword({ metadata: { name: 'a-of-eve', namespace: 'eve--prod' } }))
  passwords.put(tunnelPassword({ metadata: { name: 'a-of-earlier', ...earlier } }))
  expect(names()).toEqual(ten)
  passwords.put(tunnelPassword({ metadata: { name: 'p3', resourceVersion: '4', deletionTimestamp: MADE } }))
  expect(names()).toEqual([...ten.filter((name) => name !== 'p3'), 'q'])
  now = new Date('2026-01-01T16:00:00Z')
  expect(names()).toEqual([])
})
