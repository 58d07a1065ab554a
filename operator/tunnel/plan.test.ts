import { describe, expect, test } from 'vitest'
import { annotations, FINALIZER } from '../../crds/names.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { notReady, withCondition } from '../../store/conditions.ts'
import { type HeldCertificate, planTunnel, type Observed } from './plan.ts'
import { candidatesOf } from './resources.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')
const HOUR = 3_600_000
const metadata = { uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }

const endpoint = (name: string, spec: Partial<TunnelEndpoint['spec']> = {}): TunnelEndpoint => ({
  ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'TunnelEndpoint', metadata: { ...metadata, name } },
  spec: {
    ...{ region: 'r', domain: `${name}.example`, sshHost: name, ports: { ssh: 1, http: 2, https: 3 }, active: true },
    ...{ publicHttpPort: 80, publicHttpsPort: 443, replicas: 2, certificates: 'perTunnel', issuer: 'local', ...spec },
  },
})

function tunnel(status?: Tunnel['status'], about: Partial<Tunnel['metadata']> & { expiresAt?: string } = {}): Tunnel {
  const { expiresAt, ...meta } = about
  const marks = status?.hostname === undefined ? {} : { [annotations.hostname]: `${status.hostname}.mac` }
  return {
    ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel' },
    metadata: { ...metadata, name: 't', namespace: 'acme--prod', finalizers: [FINALIZER], annotations: marks, ...meta },
    spec: { regionId: 1, config: TunnelConfig.parse({}), ...(expiresAt !== undefined && { expiresAt }) },
    status,
  }
}

const assigned = { hostname: '0123456789abcdef', endpointRef: { name: 'a' } }
const good: HeldCertificate = { issuer: 'i', obtainedAt: NOW - HOUR, expiresAt: NOW + 3 * HOUR, renewAt: NOW + HOUR, fits: true }

const observed = (about: Partial<Observed>): Observed => ({
  ...{
    tunnel: tunnel(),
    now: NOW,
    full: undefined,
    region: true,
    assigned: undefined,
    isSigned: true,
    candidates: [],
    order: undefined,
    certificate: undefined,
    kept: undefined,
  },
  ...about,
})
const mine = { tunnel: tunnel(assigned), assigned: endpoint('a') }

/** Certificate that expires in a second, as a status has it. */
const has = (domain: string) => ({ status: 'valid', domain, expiresAt: new Date(NOW + 1_000).toISOString() }) as const

const full = { taken: 50, max: 50 }

test.each([
  {
    does: 'waits while its namespace is full, and gets nothing, not even a finalizer',
    seen: { full, tunnel: tunnel(undefined, { finalizers: [] }), candidates: [endpoint('a')] },
    ...{ actions: [], reason: 'QuotaExceeded', again: undefined },
  },
  {
    does: 'in a Namespace that is not a tenant’s gets nothing',
    seen: { refused: 'it has no label', tunnel: tunnel(undefined, { finalizers: [] }), candidates: [endpoint('a')] },
    ...{ actions: [], reason: 'NoAccess', again: undefined },
  },
  {
    does: 'in a Namespace that is not a tenant’s any more is not served',
    seen: { refused: 'it has no label', tunnel: tunnel(assigned), candidates: [endpoint('a')] },
    ...{ actions: ['withdraw'], reason: 'NoAccess' },
  },
  { does: 'reports the quota before an unknown region', seen: { full, region: false }, actions: [], reason: 'QuotaExceeded' },
  {
    does: 'above the quota is reconciled when it expires',
    seen: { full, tunnel: tunnel(undefined, { expiresAt: '2026-01-02T03:04:06Z' }) },
    ...{ actions: [], reason: 'QuotaExceeded', again: 1_000 },
  },
  {
    does: 'above the quota is deleted when it has expired',
    seen: { full, tunnel: tunnel(undefined, { expiresAt: '2026-01-02T03:04:05Z' }) },
    ...{ actions: ['expire'], reason: undefined },
  },
  { does: 'waits while its region is unknown', seen: { region: false }, actions: [], reason: 'UnknownRegion' },
  { does: 'waits while its region has no active endpoint', seen: {}, actions: [], reason: 'NoActiveEndpoint' },
  {
    does: 'gets a marked hostname and the first candidate',
    seen: { candidates: [endpoint('a')] },
    ...{ actions: ['mark', 'assign'], reason: 'DrawingHostname' },
  },
  {
    does: 'with a valid mark keeps it',
    seen: { candidates: [endpoint('a')], kept: { hostname: assigned.hostname } },
    ...{ actions: ['assign'], reason: 'DrawingHostname' },
  },
  {
    does: 'with a valid mark but no finalizer gets that first',
    seen: { tunnel: tunnel(undefined, { finalizers: [] }), candidates: [endpoint('a')], kept: { hostname: assigned.hostname } },
    ...{ actions: ['add-finalizer', 'assign'], reason: 'DrawingHostname' },
  },
  {
    does: 'with a rejected mark gets another',
    seen: { candidates: [endpoint('a')], kept: { refused: notReady('InvalidMark', 'why') } },
    ...{ actions: ['mark', 'assign'], reason: 'DrawingHostname' },
  },
  {
    does: 'whose mark was removed gets it back',
    seen: { ...mine, tunnel: tunnel(assigned, { annotations: {} }), certificate: good },
    ...{ actions: ['mark'], reason: 'Assigned' },
  },
  {
    does: 'gets a certificate before its mark is restored',
    seen: { ...mine, tunnel: tunnel(assigned, { annotations: {} }) },
    ...{ actions: ['obtain'], reason: 'ObtainingCertificate' },
  },
  {
    does: 'whose mark was overwritten keeps the wrong one',
    seen: { ...mine, tunnel: tunnel(assigned, { annotations: { [annotations.hostname]: 'x' } }), certificate: good },
    ...{ actions: [], reason: 'Assigned' },
  },
  { does: 'gets a certificate once it is assigned', seen: mine, actions: ['obtain'], reason: 'ObtainingCertificate' },
  {
    does: 'keeps the endpoint it has, even an inactive one',
    seen: { ...mine, assigned: endpoint('a', { active: false }), candidates: [endpoint('b')], certificate: good },
    ...{ actions: [], reason: 'Assigned' },
  },
  { does: 'waits when its endpoint is gone', seen: { tunnel: tunnel(assigned) }, actions: [], reason: 'EndpointMissing' },
  {
    does: 'stays ready while its certificate is renewed',
    seen: { ...mine, certificate: { ...good, renewAt: NOW } },
    ...{ actions: ['obtain'], reason: 'Assigned' },
  },
  {
    does: 'is not ready with an expired certificate',
    seen: { ...mine, certificate: { ...good, expiresAt: NOW, renewAt: NOW - 1 } },
    ...{ actions: ['obtain'], reason: 'ObtainingCertificate' },
  },
  {
    does: 'gets another certificate when it has one for other names',
    seen: { ...mine, certificate: { ...good, fits: false } },
    ...{ actions: ['obtain'], reason: 'ObtainingCertificate' },
  },
  {
    does: 'waits for the next attempt after a failed one',
    seen: {
      ...mine,
      tunnel: tunnel({ ...assigned, certificate: { status: 'failed', nextAttemptAt: new Date(NOW + 1_000).toISOString() } }),
    },
    ...{ actions: [], reason: 'ObtainingCertificate', again: 1_000 },
  },
  {
    does: 'does not wait longer than the maximum interval of attempts, after the clock was set back',
    seen: {
      ...mine,
      tunnel: tunnel({ ...assigned, certificate: { status: 'failed', nextAttemptAt: new Date(NOW + HOUR).toISOString() } }),
    },
    ...{ actions: ['obtain'], reason: 'ObtainingCertificate' },
  },
  {
    does: 'is reconciled when its certificate is due',
    seen: { ...mine, certificate: good },
    actions: [],
    reason: 'Assigned',
    again: HOUR,
  },
  {
    does: 'keeps its certificate without an issuer until that expires',
    seen: { ...mine, isSigned: false, tunnel: tunnel({ ...assigned, certificate: has('0123456789abcdef.a.example') }) },
    ...{ actions: [], reason: 'Assigned', again: 1_000 },
  },
  {
    does: 'with a certificate for another name and no issuer has none, and attempts none',
    seen: { ...mine, isSigned: false, tunnel: tunnel({ ...assigned, certificate: has('0123456789abcdef.b.example') }) },
    ...{ actions: [], reason: 'IssuerMissing', again: undefined },
  },
  {
    does: 'gets finalizer and mark before anything else',
    seen: { tunnel: tunnel(undefined, { finalizers: [] }), candidates: [endpoint('a')] },
    ...{ actions: ['mark', 'assign'], reason: 'DrawingHostname' },
  },
  {
    does: 'is reconciled when it expires, if that is sooner',
    seen: { ...mine, certificate: good, tunnel: tunnel(assigned, { expiresAt: '2026-01-02T03:04:06Z' }) },
    ...{ actions: [], reason: 'Assigned', again: 1_000 },
  },
  {
    does: 'is deleted when it has expired',
    seen: { ...mine, tunnel: tunnel(assigned, { expiresAt: '2026-01-02T03:04:05Z' }) },
    ...{ actions: ['expire'], reason: undefined },
  },
  {
    does: 'loses its certificate and then its finalizer when deleted',
    seen: { ...mine, tunnel: tunnel(assigned, { deletionTimestamp: '2026-01-02T03:04:05Z' }) },
    ...{ actions: ['forget-certificate', 'release'], reason: undefined },
  },
  {
    does: 'without its finalizer is not changed',
    seen: { tunnel: tunnel(assigned, { deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [] }) },
    ...{ actions: [], reason: undefined },
  },
])('a tunnel $does', ({ seen, actions, reason, ...rest }) => {
  const plan = planTunnel(observed(seen))
  expect(plan.actions.map((action) => action.do)).toEqual(actions)
  expect(plan.decision?.reason).toBe(reason)
  if ('again' in rest) expect(plan.requeueAfterMs).toBe(rest.again)
})

const deleted = { deletionTimestamp: '2026-01-02T03:04:05Z' }
const acme = (about: object) =>
  ({ issuer: 'acme', acme: { directoryUrl: 'https://ca.example/dir', revokeOnDelete: true, ...about } }) as TunnelEndpoint['spec']
const notRevoked = withCondition([], notReady('CertificateNotRevoked', 'no'), {
  type: 'Ready',
  generation: 1,
  now: new Date(NOW),
})

test.each([
  { does: 'has its certificate revoked', spec: acme({}), isRevoked: true },
  { does: 'keeps a valid certificate by default', spec: acme({ revokeOnDelete: false }), isRevoked: false },
  { does: 'leaves the shared certificate alone', spec: { ...acme({}), certificates: 'wildcard' as const }, isRevoked: false },
  { does: 'is held up once only', spec: acme({}), status: { ...assigned, conditions: notRevoked }, isRevoked: false },
  { does: 'without a hostname has none to revoke', spec: acme({}), status: {}, isRevoked: false },
])('a deleted tunnel $does', ({ spec, isRevoked, status = assigned }) => {
  const plan = planTunnel(observed({ assigned: endpoint('a', spec), tunnel: tunnel(status, deleted) }))
  expect(plan.revokeAt !== undefined).toBe(isRevoked)
  expect(plan.actions.map((action) => action.do)).toEqual(['forget-certificate', 'release'])
})

describe('the choice of an endpoint', () => {
  test('takes active endpoints of the region with edges, fewest tunnels first, then by name', () => {
    const all = [
      endpoint('d'),
      endpoint('c'),
      endpoint('b', { region: 'other' }),
      endpoint('a', { active: false }),
      endpoint('aa', { replicas: 0 }),
      endpoint('e'),
    ]
    const tunnels: Readonly<Record<string, number>> = { c: 1, d: 1, e: 0 }
    const chosen = candidatesOf(all, 'r', (name) => tunnels[name] ?? 0)
    expect(chosen.map((each) => each.metadata.name)).toEqual(['e', 'c', 'd'])
  })
})
