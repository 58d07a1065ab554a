import { expect, test } from 'vitest'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { endpointName } from './edges.ts'

const rules = TunnelEndpoint.rules.filter(({ field }) => field === 'metadata.name')

const endpoint = (name: string, domain: string) => ({ metadata: { name }, spec: { domain } })

test.each([
  { domain: 'tunnel.localhost', name: /^tunnel-localhost$/ },
  { domain: 'cloud.mesh', name: /^cloud-mesh-[0-9a-f]{12}$/ },
  { domain: `${'a'.repeat(49)}.test`, name: /^a{37}-[0-9a-f]{12}$/ },
])('the endpoint of $domain has a valid name', ({ domain, name }) => {
  const given = endpointName(domain, [])
  expect(given).toMatch(name)
  expect(rules.filter(({ holds }) => !holds(undefined as never, { name: given }))).toEqual([])
})

test('domains with similar names have separate endpoints, and keep them', () => {
  const dotted = endpoint(endpointName('a.b.test', []), 'a.b.test')
  const hyphened = endpoint(endpointName('a-b.test', [dotted]), 'a-b.test')
  expect(dotted.metadata.name).toBe('a-b-test')
  expect(hyphened.metadata.name).toMatch(/^a-b-test-[0-9a-f]{12}$/)
  expect(endpointName('a.b.test', [hyphened, dotted])).toBe(dotted.metadata.name)
  expect(endpointName('a-b.test', [hyphened])).toBe(hyphened.metadata.name)
})
