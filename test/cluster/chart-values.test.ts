import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { parseSettings } from '../../operator/settings.ts'
import { validate } from '../../shared/validate.ts'
import { run } from './setup/commands.ts'

/** Manifests that the chart renders from its values, without a cluster. */

const CHART = fileURLToPath(new URL('../../charts/mooring', import.meta.url))
const region = (more: object) => ({ name: 'a', id: '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10', regionId: 1, ...more })

const template = (values: object, ...more: string[]) =>
  run({
    file: 'helm',
    args: ['template', 'mooring', CHART, '--namespace', 'mooring-system', ...more, '-f', '-'],
    input: JSON.stringify(values),
  })

describe.concurrent('the chart rejects invalid values with the value and the rule', () => {
  test.each([
    { does: 'an unknown name', values: { replicas: 3 }, says: "additional properties 'replicas' not allowed" },
    {
      does: 'an unknown nested name',
      values: { apiserver: { tls: { secret: 'x' } } },
      says: "'/apiserver/tls': additional properties 'secret'",
    },
    { does: 'no operator', values: { operator: { replicas: 0 } }, says: "'/operator/replicas': minimum: got 0, want 1" },
    {
      does: 'a Service that does not exist',
      values: { apiserver: { service: { type: 'Ingress' } } },
      says: "'/apiserver/service/type': value must be one of 'ClusterIP'",
    },
    {
      does: 'a string for a number',
      values: { apiserver: { quotaInstances: 'many' } },
      says: "'/apiserver/quotaInstances': got string, want integer",
    },
    {
      does: 'an unknown engine',
      values: { regions: [region({ motors: [{ id: 'oracle-23' }] })] },
      says: "'/regions/0/motors/0/id': value must be one of 'mysql-5.7.38'",
    },
    {
      does: 'a region without an id',
      values: { regions: [{ name: 'a', regionId: 1 }] },
      says: "'/regions/0': missing property 'id'",
    },
    {
      does: 'an issuer without TLS',
      values: { oidc: { issuers: [{ name: 'corp', url: 'http://x' }] } },
      says: "'/oidc/issuers/0/url': 'http://x' does not match",
    },
    {
      does: 'an issuer with a reserved name',
      values: { oidc: { issuers: [{ name: 'system', url: 'https://x' }] } },
      says: 'local, mooring and system are taken',
    },
    {
      does: 'two regions with one id',
      values: { regions: [region({}), region({ name: 'b', regionId: 2 })] },
      says: 'regions[].id must be unique: 7b3f5a52',
    },
    {
      does: 'a rate above its burst',
      values: { apiserver: { writeRate: 50 } },
      says: 'apiserver.writeBurst must be at least apiserver.writeRate, which is 50',
    },
    {
      does: 'a memory limit below the request',
      values: { databases: { size: { memoryMiB: 4096 } } },
      says: 'databases.size.memoryLimitMiB must be at least',
    },
    {
      does: 'an invalid domain',
      values: { edges: { domain: 'Tunnels!' } },
      says: "'/edges/domain': 'Tunnels!' does not match",
    },
    {
      does: 'a domain without a region',
      values: { edges: { domain: 't.example' }, regions: [] },
      says: 'edges.domain needs a region',
    },
    {
      does: 'a TLS Secret of the administrator without wildcard certificates',
      values: { edges: { domain: 't.example', tlsSecretName: 'own' } },
      says: 'edges.tlsSecretName needs edges.certificates wildcard and edges.issuer local',
    },
    {
      does: 'wildcard certificates by http-01',
      values: { edges: { domain: 't.example', issuer: 'acme', certificates: 'wildcard', acme: { agreeToTerms: true } } },
      says: 'edges.certificates wildcard needs edges.acme.challenge dns-01 or dns-persist-01',
    },
    {
      does: 'single certificates by dns-01',
      values: { edges: { domain: 't.example', issuer: 'acme', acme: { agreeToTerms: true, challenge: 'dns-01' } } },
      says: 'edges.certificates perTunnel needs edges.acme.challenge http-01 or tls-alpn-01 or dns-persist-01',
    },
    {
      does: 'an unknown challenge',
      values: { edges: { domain: 't.example', acme: { challenge: 'dns-02' } } },
      says: "'/edges/acme/challenge': value must be one of 'http-01', 'tls-alpn-01', 'dns-01', 'dns-persist-01'",
    },
    {
      does: 'an account key of version 0',
      values: { edges: { domain: 't.example', acme: { accountKeyVersion: 0 } } },
      says: "'/edges/acme/accountKeyVersion': minimum: got 0, want 1",
    },
    {
      does: 'edges in an unknown region',
      values: { edges: { domain: 't.example', region: 'mars' } },
      says: 'edges.region must be the name of one of regions, not mars',
    },
    {
      does: 'backups without a place',
      values: { backups: { enabled: true } },
      says: 'backups.enabled needs backups.url, or both of backups.claims',
    },
    {
      does: 'backups with one claim alone',
      values: { backups: { enabled: true, claims: { operator: 'backups' } } },
      says: 'backups.enabled needs backups.url, or both of backups.claims',
    },
    {
      does: 'backups in a bucket and on a volume',
      values: { backups: { enabled: true, url: 's3://backups', claims: { operator: 'a', servers: 'b' } } },
      says: 'backups.url and backups.claims exclude each other',
    },
    {
      does: 'a bucket with credentials in its URL',
      values: { backups: { url: 's3://key:secret@backups/mooring' } },
      says: "'/backups/url': 's3://key:secret@backups/mooring' does not match",
    },
  ])('$does', async ({ values, says }) => {
    await expect(template(values)).rejects.toThrow(says)
  })

  test('another namespace', async () => {
    await expect(template({}, '--namespace', 'default')).rejects.toThrow('Mooring lives in the namespace mooring-system')
  })

  test('the chart accepts regions without engines', async () => {
    expect(
      await template({ regions: [region({}), region({ name: 'b', id: 'c'.repeat(8) + region({}).id.slice(8), regionId: 2 })] }),
    ).toContain('name: b')
  })
})

test('the operator and the API get the same quotas', async () => {
  const text = await template({ apiserver: { quotaInstances: 7, quotaDatabases: 8, quotaTunnels: 9 } })
  expect(text.match(/MOORING_QUOTA_INSTANCES, value: "7"/g)).toHaveLength(2)
  expect(text.match(/MOORING_QUOTA_DATABASES, value: "8"/g)).toHaveLength(2)
  expect(text.match(/MOORING_QUOTA_TUNNELS, value: "9"/g)).toHaveLength(2)
})

test('the operator reaches the bucket of backups by its own settings and Secret, and a volume as the user of the servers', async () => {
  const bucket = { enabled: true, url: 's3://backups/mooring', region: 'eu-central-1', endpoint: 'https://s3.example' }
  const inBucket = await template({ backups: { ...bucket, secretName: 'backup-key' } })
  expect(inBucket).toMatch(/MOORING_BACKUPS, value: "\{.*s3:\/\/backups\/mooring/)
  expect(inBucket).toContain('name: AWS_REGION, value: "eu-central-1"')
  expect(inBucket).toContain('name: AWS_ENDPOINT_URL, value: "https://s3.example"')
  expect(inBucket).toContain('secretRef: { name: "backup-key" }')
  expect(inBucket).not.toContain('claimName')

  const onVolume = await template({ backups: { enabled: true, claims: { operator: 'mine', servers: 'theirs' } } })
  expect(onVolume).toContain('persistentVolumeClaim: { claimName: "mine" }')
  expect(onVolume).toContain('runAsUser: 999')
  expect(onVolume).not.toMatch(/AWS_|secretRef/)
  expect(await template({})).not.toMatch(/AWS_|claimName|runAsUser: 999|name: MOORING_BACKUPS, value: "\{/)
})

test('catalogViewers names the groups that see the catalog: by default all authenticated users, with an empty list no group', async () => {
  const binding = 'name: mooring-catalog-viewers'
  expect(await template({})).toMatch(new RegExp(`${binding}\n[^]*?kind: Group\n +name: "system:authenticated"\n`))
  const named = await template({ catalogViewers: ['corp:developers', 'corp:ci'] })
  expect(named).toMatch(/name: "corp:developers"\n +- apiGroup: .*\n +kind: Group\n +name: "corp:ci"/)
  expect(await template({ catalogViewers: [] })).not.toContain(binding)
})

test('the chart renders a ServiceMonitor only if the cluster has that kind', async () => {
  const kind = 'monitoring.coreos.com/v1/ServiceMonitor'
  expect(await template({})).not.toContain('kind: ServiceMonitor')
  expect(await template({}, '--api-versions', kind)).toContain('kind: ServiceMonitor')
  const off = { metrics: { serviceMonitor: { enabled: false } } }
  expect(await template(off, '--api-versions', kind)).not.toContain('kind: ServiceMonitor')
})

describe('the exporters', () => {
  const settingsOf = (text: string): string => JSON.parse(/MOORING_MONITORING, value: (".*") }/.exec(text)?.[1] ?? '') as string

  test('are configured for the operator by the chart, with an image for each engine', async () => {
    const text = await template({
      monitoring: { podMonitor: { labels: { release: 'prometheus' } }, exporters: { mongodb: { image: '' } } },
    })
    const parsed = parseSettings([], { MOORING_MONITORING: settingsOf(text) })
    const images = { postgresql: expect.stringContaining('postgres-exporter:') as string, mongodb: '' }
    expect(parsed).toMatchObject({
      ok: { monitoring: { images, podMonitor: { enabled: true, labels: { release: 'prometheus' } } } },
    })
  })

  test('have a dashboard as a ConfigMap with the label that Grafana’s sidecar looks for, unless it is disabled', async () => {
    const Dashboard = z.looseObject({
      kind: z.literal('ConfigMap'),
      metadata: z.object({ namespace: z.string(), labels: z.looseObject({ grafana_dashboard: z.string() }) }),
      data: z.object({ 'mooring-databases.json': z.string() }),
    })
    const found = parseAllDocuments(await template({})).flatMap((document) => Dashboard.safeParse(document.toJS()).data ?? [])
    expect(found).toMatchObject([{ metadata: { namespace: 'mooring-system', labels: { grafana_dashboard: '1' } } }])
    const dashboard = JSON.parse(found[0]?.data['mooring-databases.json'] ?? '') as { panels: unknown[] }
    expect(dashboard.panels.length).toBeGreaterThan(5)
    expect(await template({ monitoring: { dashboard: { enabled: false } } })).not.toContain('grafana_dashboard')
  })
})

describe('the NOTES', () => {
  /** Renders the NOTES without a cluster, with the chart's default region. */
  async function notes(values: object): Promise<string> {
    const args = ['install', 'mooring', CHART, '--namespace', 'mooring-system', '--dry-run=client', '-f', '-']
    const text = await run({ file: 'helm', args, input: JSON.stringify(values) })
    return text.slice(text.indexOf('\nNOTES:\n'))
  }
  const domain = 't.example'

  test.each([
    { type: 'ClusterIP', has: ['port-forward service/edge-default 22222:22 28443:443 &', 'for the cluster alone'] },
    { type: 'NodePort', has: ['.status.hostIP}', '{.spec.ports[?(@.name=="ssh")].nodePort}', '*.t.example lead to such nodes'] },
    {
      type: 'LoadBalancer',
      has: ['{.status.loadBalancer.ingress[0].ip}', 'ssh_port=22 https_port=443', '*.t.example lead to $edge'],
    },
  ])('have valid shell commands for a tunnel by a Service of type $type', async ({ type, has }) => {
    const ports = { ssh: 22, http: 80, https: 443 }
    const text = await notes({ edges: { domain, sshHost: 'ssh.example', ports, service: { type } } })
    for (const part of [...has, 't.example, ssh.example and *.t.example']) expect(text).toContain(part)
    const lines = text.split('\n').filter((line) => line.startsWith('  '))
    for (const option of ['ExitOnForwardFailure=yes', 'ServerAliveInterval=10', 'ServerAliveCountMax=3']) {
      expect(lines.filter((line) => line.includes(`-o ${option} `))).toHaveLength(1)
    }
    await run({ file: 'bash', args: ['-n'], input: lines.map((line) => line.slice(2)).join('\n') })
  })

  test('name the missing domain of tunnels, and mention no tunnels when edges are disabled', async () => {
    expect(await notes({})).toContain('There is no domain for tunnels yet')
    expect(await notes({ edges: { enabled: false, domain } })).not.toMatch(/first tunnel|no domain|edge-default/)
  })
})

/** Spec of the TunnelEndpoint in manifests, as the API server stores it. @throws Error when it is invalid */
function endpointIn(manifests: string): unknown {
  const Manifest = z.looseObject({ kind: z.string(), metadata: z.object({ name: z.string() }), spec: z.unknown() })
  const found = parseAllDocuments(manifests).flatMap((document) => Manifest.safeParse(document.toJS()).data ?? [])
  const { metadata, spec } = found.find(({ kind }) => kind === 'TunnelEndpoint') ?? {}
  return validate(TunnelEndpoint, { metadata: { name: metadata?.name ?? '' }, spec }).spec
}

describe('edges', () => {
  const edgesOf = (text: string): object =>
    JSON.parse(JSON.parse(/MOORING_EDGES, value: (".*") }/.exec(text)?.[1] ?? '') as string) as object

  test('the operator accepts their settings from the chart', async () => {
    const parsed = parseSettings([], {
      MOORING_EDGES: JSON.stringify(edgesOf(await template({ imagePullSecrets: ['registry'] }))),
    })
    expect(parsed).toMatchObject({ ok: { edges: { image: 'mooring:0.1.0', pullSecrets: ['registry'], networkPolicy: true } } })
  })

  test('settings of other components do not restart them', async () => {
    const fixed = { edges: { image: { tag: '0.1.0' } } }
    const changed = { ...fixed, image: { tag: '0.2.0' }, logLevel: 'debug', operator: { heapMiB: 400 } }
    expect(edgesOf(await template(changed))).toEqual(edgesOf(await template(fixed)))
  })

  test('a domain adds an endpoint, in the first region or in the named one', async () => {
    const second = region({ name: 'b', id: `c0ffee00${region({}).id.slice(8)}`, regionId: 2 })
    const regions = [region({}), second]
    expect(await template({ regions })).not.toContain('kind: TunnelEndpoint')
    const first = await template({ regions, edges: { domain: 't.example' } })
    expect(first.slice(first.indexOf('kind: TunnelEndpoint'))).toMatch(/region: "7b3f5a52[^]*sshHost: "t\.example"/)
    const named = await template({ regions, edges: { domain: 't.example', region: 'b', sshHost: 'ssh.example' } })
    expect(named.slice(named.indexOf('kind: TunnelEndpoint'))).toMatch(/region: "c0ffee00[^]*sshHost: "ssh\.example"/)
  })

  test.each([
    { certificates: 'wildcard', acme: { challenge: 'dns-persist-01', accountKeyVersion: 2 } },
    { certificates: 'perTunnel', acme: { challenge: 'dns-persist-01', revokeOnDelete: true } },
    { certificates: 'perTunnel', acme: { challenge: 'tls-alpn-01', accountKeyVersion: 3 } },
  ])('the endpoint has the settings of ACME: $certificates by $acme', async ({ certificates, acme }) => {
    const edges = { domain: 't.example', issuer: 'acme', certificates, acme: { ...acme, agreeToTerms: true } }
    const spec = endpointIn(await template({ regions: [region({})], edges }))
    expect(spec).toMatchObject({ issuer: 'acme', certificates, acme })
  })

  test('the endpoint names the TLS Secret of the administrator', async () => {
    const edges = { domain: 't.example', certificates: 'wildcard', tlsSecretName: 'own-tls' }
    const spec = endpointIn(await template({ regions: [region({})], edges }))
    expect(spec).toMatchObject({ issuer: 'local', certificates: 'wildcard', tlsSecretName: 'own-tls' })
  })

  test('without edges the chart renders no endpoint and no journal', async () => {
    const text = await template({ edges: { enabled: false, domain: 't.example' } })
    for (const absent of ['MOORING_EDGES', 'journal-reader', 'kind: TunnelEndpoint']) expect(text).not.toContain(absent)
  })

  test('the API requires the Secret of Mooring’s own journal at its start, but not that of an outside journal', async () => {
    expect(await template({})).toMatch(/secretName: journal-reader, .*optional: false/)
    const outside = await template({ tunnels: { journal: { secretName: 'theirs' } } })
    expect(outside).toMatch(/secretName: journal-reader, .*optional: true/)
    expect(outside).toContain('MOORING_JOURNAL_SECRET, value: "theirs"')
  })
})
