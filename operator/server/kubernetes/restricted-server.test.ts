import { describe, expect, test } from 'vitest'
import { desired, pod, server, service } from '../../../test/support/operator/kubernetes-objects.ts'
import type { Region } from '../../../crds/region.ts'
import type { ServerAccess } from '../access.ts'
import { callersAddress, certificateNames, internalHost } from './addresses.ts'
import { placementOf, POD_SETTINGS, type DesiredServer } from './desired-server.ts'
import { accessHash, configHash, configMapOf, serviceOf } from './manifests.ts'
import { mysqlPod } from './mysql.ts'
import { networkPolicyOf } from './network-policy.ts'

const PODS = ['10.244.0.0/16', 'fd00:10::/56']
const INTERNAL = 'pg-1.mooring-shared.svc.cluster.local'
const OWN = { namespaceSelector: { matchLabels: { 'mooring.dev/organization': 'acme' } } }

const EDGES = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'mooring-system' } },
  podSelector: { matchLabels: { 'app.kubernetes.io/name': 'mooring-edge', 'mooring.dev/endpoint': 'main' } },
}

/** Dedicated server with this access. */
function restricted(access: Partial<ServerAccess>, traits: Partial<DesiredServer> = {}): DesiredServer {
  const whole = { organization: 'acme', isPrivate: false, ...access }
  const dedicated = { ...server, spec: { ...server.spec, tenancy: 'dedicated' as const, access: whole } }
  return desired({ server: dedicated, access: whole, ...traits })
}

describe('the NetworkPolicy of a restricted server admits, beside the operator,', () => {
  const block = (cidr: string, ...except: string[]) => ({ ipBlock: { cidr, ...(except.length > 0 && { except }) } })
  test.each([
    {
      name: 'pods of its organization and everything outside the pod networks, without a list',
      access: {},
      peers: [OWN, block('0.0.0.0/0', '10.244.0.0/16'), block('::/0', 'fd00:10::/56')],
    },
    { name: 'pods of its organization alone, with an empty list', access: { sources: [] }, peers: [OWN] },
    { name: 'pods of its organization alone, when private', access: { isPrivate: true }, peers: [OWN] },
    {
      name: 'the edges of one endpoint, also when private',
      access: { isPrivate: true, edges: 'main' },
      peers: [OWN, EDGES],
    },
    {
      name: 'the edges of one endpoint beside the sources',
      access: { sources: ['198.51.100.7'], edges: 'main' },
      peers: [OWN, EDGES, block('198.51.100.7/32')],
    },
    {
      name: 'the sources in CIDR notation',
      access: { sources: ['198.51.100.7', '2001:db8::/32'] },
      peers: [OWN, block('198.51.100.7/32'), block('2001:db8::/32')],
    },
    {
      name: 'a source around the pod networks without these',
      access: { sources: ['10.0.0.0/8'] },
      peers: [OWN, block('10.0.0.0/8', '10.244.0.0/16')],
    },
    { name: 'no source that is a pod network', access: { sources: ['10.244.0.0/16'] }, peers: [OWN] },
    { name: 'no source within the pod networks', access: { sources: ['10.244.3.7', 'fd00:10::7'] }, peers: [OWN] },
  ])('$name', ({ access, peers }) => {
    const { spec } = networkPolicyOf(restricted(access), { namespaces: ['other--x'], podNetworks: PODS })
    expect(spec.ingress[0]?.from.slice(1)).toEqual(peers)
    expect(spec.egress).toEqual([])
  })

  test('no source of a family whose pod networks are unknown', () => {
    const access = { sources: ['198.51.100.7', '2001:db8::/32'] }
    const fromOf = (podNetworks: readonly string[]) =>
      networkPolicyOf(restricted(access), { namespaces: [], podNetworks }).spec.ingress[0]?.from.slice(1)
    expect(fromOf([])).toEqual([OWN])
    expect(fromOf(['10.244.0.0/16'])).toEqual([OWN, block('198.51.100.7/32')])
  })
})

test.each([
  { name: 'without a list', access: {}, ranges: undefined },
  { name: 'with a list', access: { sources: ['198.51.100.7'] }, ranges: ['198.51.100.7/32'] },
  { name: 'with an empty list, to no client', access: { sources: [] }, ranges: ['0.0.0.0/32'] },
])('the load balancer of a server is open $name', ({ access, ranges }) => {
  const { spec } = serviceOf(restricted(access, { exposure: 'LoadBalancer' }))
  expect(spec?.loadBalancerSourceRanges).toEqual(ranges)
  expect(serviceOf(restricted(access, { exposure: 'NodePort' })).spec).not.toHaveProperty('loadBalancerSourceRanges')
})

describe('a private server', () => {
  const access = { organization: 'acme', isPrivate: true, sources: [] }
  const dedicated = { ...server, spec: { ...server.spec, tenancy: 'dedicated' as const, access } }
  const region = {
    spec: {
      motors: [{ id: server.spec.motor, image: 'postgres:15.4' }],
      databases: { exposure: 'LoadBalancer', host: 'db.test' },
    },
  } as unknown as Region

  test('has no address outside the cluster, whatever its Region says', () => {
    const facts = { settings: POD_SETTINGS, region: () => region, plan: () => undefined }
    const placement = placementOf(dedicated, facts, { statefulSet: undefined, service: undefined })
    expect(placement).toMatchObject({ exposure: 'ClusterIP', host: undefined })
    const shared = placementOf(server, facts, { statefulSet: undefined, service: undefined })
    expect(shared).toMatchObject({ exposure: 'LoadBalancer', host: 'db.test', access: undefined })
  })

  test('has its internal host for callers, which its certificate names', () => {
    const it = restricted({ isPrivate: true })
    const surroundings = { service: service(), pod: pod(), nodes: [] }
    expect(callersAddress(it, surroundings)).toEqual({ host: INTERNAL, port: 5432 })
    expect(internalHost(it)).toBe(INTERNAL)
    expect(certificateNames(it, surroundings)).toContain(INTERNAL)
  })
})

describe('the configuration', () => {
  test('of PostgreSQL admits the sources and the pods, and a change restarts no server', () => {
    const [one, other] = [restricted({ sources: ['198.51.100.7'] }), restricted({ sources: [] })]
    const [before, after] = [configMapOf(one, PODS), configMapOf(other, PODS)]
    expect(before.data?.['pg_hba.conf']).toContain('hostssl sameuser all 198.51.100.7/32 scram-sha-256\n')
    expect(after.data?.['pg_hba.conf']).not.toContain('198.51.100.7')
    expect(after.data?.['pg_hba.conf']).toContain('hostssl sameuser all 10.244.0.0/16 scram-sha-256\n')
    expect(configHash(one, before)).toBe(configHash(other, after))
    expect(accessHash(one, before)).not.toBe(accessHash(other, after))
  })

  test('of MySQL is the same for all rules', () => {
    const [one, other] = [restricted({ sources: [] }, { engine: mysqlPod }), restricted({}, { engine: mysqlPod })]
    expect(configMapOf(one, PODS).data).toEqual(configMapOf(other, PODS).data)
    expect(configMapOf(one, PODS).data?.['my.cnf']).toContain('init_connect=CALL mooring_access.verify()\n')
    expect(accessHash(one, configMapOf(one, PODS))).toBeUndefined()
  })

  test('of a shared server has no rules of access, and all of it counts for a restart', () => {
    const shared = configMapOf(desired(), PODS)
    expect(shared.data?.['pg_hba.conf']).not.toContain('# admitted')
    const changed = { ...shared, data: { ...shared.data, 'pg_hba.conf': '' } }
    expect(configHash(desired(), changed)).not.toBe(configHash(desired(), shared))
    expect(configMapOf(desired({ engine: mysqlPod }), PODS).data?.['my.cnf']).not.toContain('init_connect')
  })
})
