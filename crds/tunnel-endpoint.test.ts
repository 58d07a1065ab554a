import { expect, test } from 'vitest'
import { TunnelEndpoint } from './tunnel-endpoint.ts'
import { InvalidObjectError, validate } from '../shared/validate.ts'

const FORM = 'metadata.name must be at most 50 lower-case letters, digits and hyphens, a letter or digit first and last'
const MESH =
  'metadata.name must not end in -mesh: the suffix is reserved for the Service by which the edges of an endpoint find each other'

const spec = { region: '11111111-1111-4111-8111-111111111111', domain: 't.example', sshHost: 't.example' }

function errorsOf(name: string, more: object = {}): readonly string[] {
  try {
    validate(TunnelEndpoint, { metadata: { name }, spec: { ...spec, ...more } })
    return []
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error
    return error.fields.map(({ field, message }) => `${field} ${message}`)
  }
}

test.each([
  { name: 'default', errors: [] },
  { name: 'mesh', errors: [] },
  { name: 'mesh-1', errors: [] },
  { name: 'smesh', errors: [] },
  { name: 'default-mesh', errors: [MESH] },
  { name: 'x-mesh-mesh', errors: [MESH] },
  { name: 'a.b', errors: [FORM] },
  { name: '1'.repeat(50), errors: [] },
  { name: 'a'.repeat(51), errors: [FORM] },
])('an endpoint with the name $name has the errors $errors', ({ name, errors }) => {
  expect(errorsOf(name)).toEqual(errors)
})

const dns = { server: '192.0.2.1', tsigKeyName: 'mooring', tsigSecretName: 'key' }
const CHALLENGE =
  'spec.certificates with issuer acme, certificates wildcard needs the challenge dns-01 or dns-persist-01, and perTunnel needs http-01, tls-alpn-01 or dns-persist-01'
const DNS = 'spec.acme.dns is required by the challenge dns-01'

test.each([
  { certificates: 'perTunnel', acme: undefined, errors: [] },
  { certificates: 'perTunnel', acme: { challenge: 'http-01' }, errors: [] },
  { certificates: 'perTunnel', acme: { challenge: 'tls-alpn-01' }, errors: [] },
  { certificates: 'wildcard', acme: { challenge: 'tls-alpn-01' }, errors: [CHALLENGE] },
  { certificates: 'perTunnel', acme: { challenge: 'dns-persist-01' }, errors: [] },
  { certificates: 'wildcard', acme: { challenge: 'dns-persist-01' }, errors: [] },
  { certificates: 'perTunnel', acme: { challenge: 'dns-01', dns }, errors: [CHALLENGE] },
  { certificates: 'wildcard', acme: undefined, errors: [CHALLENGE] },
  { certificates: 'wildcard', acme: { challenge: 'http-01' }, errors: [CHALLENGE] },
  { certificates: 'wildcard', acme: { challenge: 'dns-01', dns }, errors: [] },
  { certificates: 'wildcard', acme: { challenge: 'dns-01' }, errors: [DNS] },
])('an endpoint with issuer acme, certificates $certificates and $acme has the errors $errors', ({ errors, ...about }) => {
  expect(errorsOf('default', { issuer: 'acme', ...about })).toEqual(errors)
})

const OWN = 'spec.tlsSecretName needs certificates wildcard and issuer local'

test.each([
  { tlsSecretName: 'own-tls', certificates: 'wildcard', issuer: 'local', errors: [] },
  { tlsSecretName: 'own-tls', certificates: 'perTunnel', issuer: 'local', errors: [OWN] },
  {
    ...{ tlsSecretName: 'own-tls', certificates: 'wildcard', issuer: 'acme', acme: { challenge: 'dns-01', dns } },
    errors: [OWN],
  },
  {
    tlsSecretName: 'Own',
    certificates: 'wildcard',
    issuer: 'local',
    errors: ['spec.tlsSecretName must be the name of an object'],
  },
])('an endpoint with $tlsSecretName, $certificates, $issuer has the errors $errors', ({ errors, ...about }) => {
  expect(errorsOf('default', about)).toEqual(errors)
})

test.each([
  { server: '192.0.2.1:53' },
  { server: 'ns.example.test' },
  { server: '[2001:db8::1]:53' },
  { server: '2001:db8::1', errors: 1 },
  { server: 'ns.example.test:', errors: 1 },
  { server: 'a b', errors: 1 },
  { server: '-x', errors: 1 },
  { zone: 'example.test.' },
  { zone: '', errors: 1 },
  { zone: 'a..b', errors: 1 },
  { zone: `${'a'.repeat(64)}.test`, errors: 1 },
  { tsigAlgorithm: 'hmac-md5', errors: 1 },
])('the DNS settings $server $zone $tsigAlgorithm are checked', ({ errors = 0, ...settings }) => {
  const acme = { challenge: 'dns-01', dns: { ...dns, ...settings } }
  expect(errorsOf('default', { issuer: 'acme', certificates: 'wildcard', acme })).toHaveLength(errors)
})
