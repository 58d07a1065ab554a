import { expect, test, vi } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf, isReady } from '../../store/conditions.ts'
import { DAY, endOf, startTunnels, web } from '../../test/support/operator/tunnel-controllers.ts'

const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH'

/** Failures that the controllers of tunnels and endpoints report. */

test('a tunnel without failures causes no event', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const { status } = await at.reason('Assigned')
  await at.advance(61 * DAY)
  await at.until('web', (tunnel) => endOf(tunnel.status) > endOf(status))
  expect(at.told()).toEqual([])
})

test('each failure of a tunnel is reported once, the loss of its endpoint included', async () => {
  await using at = await startTunnels()
  await at.makeTunnel()
  await at.reason('UnknownRegion')
  await at.makeRegion()
  await at.reason('NoActiveEndpoint')
  await at.makeEndpoint('a')
  await at.reason('Assigned')
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { replicas: 0 } })
  await at.reason('EndpointNotServed')
  await at.store.delete(TunnelEndpoint, { name: 'a' })
  await at.reason('EndpointMissing')
  expect(at.told()).toEqual([
    'Tunnel UnknownRegion: there is no region 1',
    'Tunnel NoActiveEndpoint: region 1 has no active endpoint with edges',
    'Tunnel EndpointNotServed: no edge serves a.test',
    'Tunnel EndpointMissing: its endpoint a is gone',
  ])
})

test('a failed certificate is reported once for all attempts, and again when it fails after a success', async () => {
  let isDown = true
  let asked = 0
  await using at = await startTunnels({
    issuer: (real) => ({
      ...real,
      obtain(name) {
        asked += 1
        return isDown ? Promise.reject(new Error('the authority is away')) : real.obtain(name)
      },
    }),
  })
  const failed = 'Tunnel CertificateFailed: its certificate could not be obtained: the authority is away'
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const first = await at.until('web', ({ status }) => status?.certificate?.lastError !== undefined)
  await at.advance(61_000)
  const next = first.status?.certificate?.nextAttemptAt
  await at.until('web', ({ status }) => status?.certificate?.nextAttemptAt !== next)
  expect([asked, at.told()]).toEqual([2, [failed]])
  isDown = false
  await at.advance(61_000)
  await at.reason('Assigned')
  isDown = true
  await at.advance(70 * DAY)
  await at.until('web', ({ status }) => status?.certificate?.lastError !== undefined)
  expect(at.told()).toEqual([failed, failed])
})

test('unusable SSH keys are reported once with their index, while the tunnel is ready', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  await at.reason('Assigned')
  const withKeys = (...authorizedKeys: string[]) => at.store.mergePatch(Tunnel, web, { spec: { config: { authorizedKeys } } })
  const said = (generation: number) => at.until('web', ({ status }) => status?.observedGeneration === generation)
  const [cut, misnamed] = [ED25519.slice(0, -8), ED25519.replace('ssh-ed25519', 'ssh-rsa')]
  await withKeys(cut, ED25519, misnamed)
  const note =
    'a key must be a whole key of the type that it names, RSA with 2048 bits or more; no client can log in by spec.config.authorizedKeys[0], spec.config.authorizedKeys[2]'
  const broken = await said(2)
  expect(conditionOf(broken, 'KeysUsable')).toMatchObject({ status: 'False', reason: 'UnusableKey', message: note })
  expect(isReady(broken)).toBe(true)
  await withKeys(ED25519)
  expect(conditionOf(await said(3), 'KeysUsable')).toBeUndefined()
  expect(at.told()).toEqual([`Tunnel UnusableKey: ${note}`])
})

test.each([
  {
    does: 'no region',
    given: {},
    told: 'TunnelEndpoint UnknownRegion: there is no region 0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01',
  },
  {
    does: 'edges whose image cannot be pulled',
    given: { region: true, ensure: async () => ({ ready: 0, message: 'its pods cannot be created', isFailing: true }) },
    told: 'TunnelEndpoint EdgesFailing: its pods cannot be created',
  },
  {
    does: 'edges that fail without a reason',
    given: { region: true, ensure: () => Promise.reject(new Error('password=hunter2')) },
    told: 'TunnelEndpoint ReconcileFailed: unexpected error: see the log of the operator',
  },
  {
    does: 'edges that the API server rejects',
    given: { region: true, ensure: () => Promise.reject(new MooringError('forbidden', 'it may make no Deployment')) },
    told: 'TunnelEndpoint ReconcileFailed: forbidden: it may make no Deployment',
  },
])('an endpoint with $does causes an event', async ({ given: { region, ...options }, told }) => {
  await using at = await startTunnels(options)
  if (region) await at.makeRegion()
  await at.makeEndpoint('a')
  await vi.waitFor(() => expect(at.told()).toContain(told), { timeout: 60_000 })
})

test('an endpoint whose edges start causes no event', async () => {
  await using at = await startTunnels({ ensure: async () => ({ ready: 0, message: 'no edge answers yet' }) })
  await at.makeRegion()
  await at.makeEndpoint('a')
  await vi.waitFor(async () => expect((await at.store.get(TunnelEndpoint, { name: 'a' }))?.status?.readyReplicas).toBe(0), {
    timeout: 60_000,
  })
  expect(at.told()).toEqual([])
})
