import { expect, test } from 'vitest'
import { TunnelEndpoint } from './tunnel-endpoint.ts'
import { InvalidObjectError, validate } from '../shared/validate.ts'

const FORM = 'metadata.name must be at most 50 lower-case letters, digits and hyphens, a letter or digit first and last'
const MESH =
  'metadata.name must not end in -mesh: the suffix is reserved for the Service by which the edges of an endpoint find each other'

const spec = { region: '11111111-1111-4111-8111-111111111111', domain: 't.example', sshHost: 't.example' }

function errorsOf(name: string): readonly string[] {
  try {
    validate(TunnelEndpoint, { metadata: { name }, spec })
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
