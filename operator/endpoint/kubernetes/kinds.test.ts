import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import {
  edgeName,
  formerHostKeysSecret,
  meshName,
  meshSecret,
  sharedCertificate,
  unknownHostsSecret,
} from '../../../shared/edge-objects.ts'

const rules = TunnelEndpoint.rules.filter(({ field }) => field === 'metadata.name')
const isAllowed = (name: string) => rules.every(({ holds }) => holds(undefined as never, { name }))

/** Names of an endpoint's objects, with the kind if there are several. */
const servicesOf = (endpoint: string) => [edgeName(endpoint), meshName(endpoint)]
const secretsOf = (endpoint: string) =>
  [formerHostKeysSecret, meshSecret, sharedCertificate, unknownHostsSecret].map((nameOf) => nameOf(endpoint))

const parts = fc.constantFrom('x', 'mesh', 'host-keys', 'host', 'keys', 'certificate', 'strangers', 'edge', 'endpoint', '1')
const endpointName = fc
  .array(parts, { minLength: 1, maxLength: 5 })
  .map((words) => words.join('-'))
  .filter(isAllowed)

/** Label of RFC 1123, which the name of a Service must be. */
const LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/

test('objects of two endpoints never share a name, and each Service has a valid name', () => {
  fc.assert(
    fc.property(endpointName, parts, (one, part) => {
      const other = `${one}-${part}`
      fc.pre(isAllowed(other))
      for (const namesOf of [servicesOf, secretsOf]) {
        const names = [...namesOf(one), ...namesOf(other)]
        expect(new Set(names).size).toBe(names.length)
      }
    }),
  )
  for (const name of servicesOf(`1${'x'.repeat(49)}`)) expect(name).toMatch(LABEL)
})
