import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { run } from './setup/run.ts'

/** What the chart makes of its values without a cluster. */

const CHART = fileURLToPath(new URL('../../charts/mooring', import.meta.url))
const region = (more: object) => ({ name: 'a', id: '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10', regionId: 1, ...more })

const template = (values: object, ...more: string[]) =>
  run({
    file: 'helm',
    args: ['template', 'mooring', CHART, '--namespace', 'mooring-system', ...more, '-f', '-'],
    input: JSON.stringify(values),
  })

describe('values that are wrong are refused, with the value and the rule', () => {
  test.each([
    { does: 'an unknown name', values: { replicas: 3 }, says: "additional properties 'replicas' not allowed" },
    {
      does: 'an unknown name further down',
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
      does: 'a number in words',
      values: { apiserver: { quotaInstances: 'many' } },
      says: "'/apiserver/quotaInstances': got string, want integer",
    },
    {
      does: 'an engine that nobody knows',
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
      does: 'an issuer with a name of Mooring',
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
      does: 'a limit below what is set aside',
      values: { databases: { size: { memoryMiB: 4096 } } },
      says: 'databases.size.memoryLimitMiB must be at least',
    },
  ])('$does', async ({ values, says }) => {
    await expect(template(values)).rejects.toThrow(says)
  })

  test('another namespace', async () => {
    await expect(template({}, '--namespace', 'default')).rejects.toThrow('Mooring lives in the namespace mooring-system')
  })

  test('regions may do without engines', async () => {
    expect(
      await template({ regions: [region({}), region({ name: 'b', id: 'c'.repeat(8) + region({}).id.slice(8), regionId: 2 })] }),
    ).toContain('name: b')
  })
})

test('a ServiceMonitor is rendered only where the cluster knows that kind', async () => {
  const kind = 'monitoring.coreos.com/v1/ServiceMonitor'
  expect(await template({})).not.toContain('kind: ServiceMonitor')
  expect(await template({}, '--api-versions', kind)).toContain('kind: ServiceMonitor')
  const off = { metrics: { serviceMonitor: { enabled: false } } }
  expect(await template(off, '--api-versions', kind)).not.toContain('kind: ServiceMonitor')
})
