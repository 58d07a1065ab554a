import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parseSettings } from '../../operator/settings.ts'
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

describe('the chart rejects invalid values with the value and the rule', () => {
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
      does: 'edges in an unknown region',
      values: { edges: { domain: 't.example', region: 'mars' } },
      says: 'edges.region must be the name of one of regions, not mars',
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
  const text = await template({ apiserver: { quotaInstances: 7, quotaTunnels: 9 } })
  expect(text.match(/MOORING_QUOTA_INSTANCES, value: "7"/g)).toHaveLength(2)
  expect(text.match(/MOORING_QUOTA_TUNNELS, value: "9"/g)).toHaveLength(2)
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
