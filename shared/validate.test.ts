import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Namespace, RoleBinding, Secret } from '../crds/core.ts'
import { type Kind, defineKind } from '../crds/kind.ts'
import { ANNOTATIONS_MAX_BYTES, fieldErrorsOf, InvalidObjectError, validate } from './validate.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelConfig } from '../crds/tunnel-config.ts'

const region = '00000000-0000-4000-8000-000000000000'
const metadata = { name: 'x', namespace: 'ns' }
const spec = { identifier: 'pr-1', region, motor: 'postgresql-15.4.0' }
const instance = { metadata, spec }
const regional = { metadata: { name: 'eu' }, spec: { id: region, regionId: 1, name: 'Europe' } }

function errorsOf(kind: Kind, object: unknown, old?: unknown): string[] {
  try {
    validate(kind, object, old)
  } catch (error) {
    if (error instanceof InvalidObjectError) return error.fields.map(({ field, message }) => `${field} ${message}`)
    throw error
  }
  return []
}

test('validate returns the body with defaults', () => {
  expect(validate(SharedInstance, { apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', ...instance })).toEqual({
    spec: { ...spec, enabled: true, passwordVersion: 1, resetVersion: 0, extensions: [] },
  })
})

test('validate applies rules to a changed spec only: a stored one may break a newer rule', () => {
  const config = { ...TunnelConfig.parse({}), ingressIPWhitelist: ['192.0.2.7/24'] }
  const stored = { metadata, spec: { regionId: 1, config } }
  const rule = [expect.stringMatching(/^spec\.config\.ingressIPWhitelist must contain only/)]
  expect(errorsOf(Tunnel, stored)).toEqual(rule)
  expect(errorsOf(Tunnel, { ...stored, status: { url: 'https://x.test' } }, stored)).toEqual([])
  expect(errorsOf(Tunnel, { ...stored, spec: { regionId: 1, config: { ...config, httpsOnly: true } } }, stored)).toEqual(rule)
})

test('validate names every invalid field, with its rule', () => {
  const wrong = {
    metadata: { name: 'X', colour: 'red' },
    spec: { region: 'here', motor: 'oracle-1', enabled: 'yes', passwordVersion: 0, templateRef: { name: 'a', uid: 'b' }, ttl: 5 },
    extra: 1,
  }
  const errors = errorsOf(SharedInstance, wrong)
  expect(errors).toHaveLength(11)
  expect(errors).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^metadata\.name must be lower-case letters/),
      'metadata.namespace is required',
      expect.stringMatching(/^metadata\.colour is not a known field/),
      'spec.identifier is required',
      'spec.region must be the id (a UUID) of a Region',
      expect.stringMatching(/^spec\.motor must be one of: mysql-5\.7\.38, .*, mongodb-7\.0\.2$/),
      'spec.enabled must be true or false',
      'spec.passwordVersion must be at least 1',
      'spec.templateRef.uid is not a known field; known here: name',
      expect.stringMatching(/^spec\.ttl is not a known field/),
      expect.stringMatching(/^extra is not a known field/),
    ]),
  )
})

test.each<{ does: string; kind: Kind; object: unknown; errors: string[] }>([
  {
    does: 'names the entry of a list',
    kind: Region,
    object: { ...regional, spec: { ...regional.spec, motors: [{ id: 'mysql-8.0.29' }, { id: 'mongodb-5.0.9', worm: true }] } },
    errors: ['spec.motors[1].worm is not a known field; known here: id, image, extensions, extensionDirectory, tls, warm'],
  },
  {
    does: 'refuses a namespace on a cluster-scoped kind',
    kind: Region,
    object: { ...regional, metadata: { name: 'eu', namespace: 'ns' } },
    errors: ['metadata.namespace is not allowed: the kind is cluster-scoped'],
  },
  {
    does: 'refuses an object of another kind',
    kind: SharedInstance,
    object: { ...instance, kind: 'Region' },
    errors: ['kind must be SharedInstance'],
  },
  {
    does: 'refuses an object of another version',
    kind: SharedInstance,
    object: { ...instance, apiVersion: 'mooring.dev/v2' },
    errors: ['apiVersion must be mooring.dev/v1alpha1'],
  },
  {
    does: 'refuses unknown status fields',
    kind: SharedInstance,
    object: { ...instance, status: { hots: 'x' } },
    errors: ['status.hots is not a known field'],
  },
  {
    does: 'names required fields that are absent',
    kind: SharedInstance,
    object: {},
    errors: ['metadata is required', 'spec is required'],
  },
  {
    does: 'bounds strings',
    kind: Region,
    object: { ...regional, spec: { ...regional.spec, name: '' } },
    errors: ['spec.name must be at least 1 characters long'],
  },
  {
    does: 'keeps unknown fields of Kubernetes’ own kinds',
    kind: Secret,
    object: { metadata, data: {}, immutable: true },
    errors: [],
  },
  { does: 'checks their known fields', kind: Secret, object: { metadata, data: { a: '%' } }, errors: ['data.a must be base64'] },
])('$does', ({ kind, object, errors }) => {
  expect(errorsOf(kind, object)).toEqual(errors)
})

test('validate returns unknown fields of Kubernetes’ own kinds', () => {
  expect(validate(Secret, { metadata, data: {}, immutable: true })).toEqual({ type: 'Opaque', data: {}, immutable: true })
})

describe('metadata', () => {
  const big = 'x'.repeat(ANNOTATIONS_MAX_BYTES - 1)
  test.each<{ does: string; meta: object; errors: number }>([
    { does: 'allows a subdomain of 253 characters', meta: { name: 'a.'.repeat(126) + 'a' }, errors: 0 },
    { does: 'refuses a subdomain of 254 characters', meta: { name: 'a'.repeat(254) }, errors: 1 },
    { does: 'refuses a slash in a name', meta: { name: 'a/b' }, errors: 1 },
    { does: 'refuses a name that ends in a line feed', meta: { name: 'a\n' }, errors: 1 },
    { does: 'refuses a namespace with a dot', meta: { namespace: 'a.b' }, errors: 1 },
    {
      does: 'allows labels with a domain and empty values',
      meta: { labels: { 'mooring.dev/organization': 'acme', role: '' } },
      errors: 0,
    },
    { does: 'refuses a label value with a space', meta: { labels: { a: 'b c' } }, errors: 1 },
    { does: 'refuses a label name with two slashes', meta: { labels: { 'a/b/c': 'd' } }, errors: 1 },
    { does: 'refuses a label value of 64 characters', meta: { labels: { a: 'b'.repeat(64) } }, errors: 1 },
    { does: 'refuses an annotation without a name', meta: { annotations: { '': 'x' } }, errors: 1 },
    { does: 'allows 256 KiB of annotations', meta: { annotations: { a: big } }, errors: 0 },
    { does: 'refuses annotations of 256 KiB and a byte', meta: { annotations: { a: `${big}x` } }, errors: 1 },
    { does: 'refuses a finalizer that is not a name', meta: { finalizers: ['mooring.dev/'] }, errors: 1 },
    {
      does: 'refuses an owner without uid',
      meta: { ownerReferences: [{ apiVersion: 'v1', kind: 'Secret', name: 'a' }] },
      errors: 1,
    },
  ])('$does', ({ meta, errors }) => {
    expect(errorsOf(SharedInstance, { metadata: { ...metadata, ...meta }, spec })).toHaveLength(errors)
  })

  test('the name of a Namespace is a label of at most 63 characters', () => {
    expect(errorsOf(Namespace, { metadata: { name: 'a'.repeat(63) } })).toEqual([])
    expect(errorsOf(Namespace, { metadata: { name: 'a.b' } })).toHaveLength(1)
    expect(errorsOf(Namespace, { metadata: { name: 'a'.repeat(64) } })).toHaveLength(1)
  })
})

describe('with the stored object', () => {
  const old = { metadata, ...validate(SharedInstance, instance) }

  test.each<{ does: string; change: object; errors: string[] }>([
    { does: 'lets a mutable field change', change: { identifier: 'pr-2' }, errors: [] },
    { does: 'refuses a change of an immutable field', change: { motor: 'mysql-8.0.29' }, errors: ['spec.motor is immutable'] },
    {
      does: 'refuses to add an immutable field',
      change: { templateRef: { name: 't' } },
      errors: ['spec.templateRef is immutable'],
    },
    {
      does: 'reports a changed immutable field together with other errors',
      change: { motor: 'mysql-8.0.29', enabled: 1 },
      errors: ['spec.enabled must be true or false', 'spec.motor is immutable'],
    },
  ])('$does', ({ change, errors }) => {
    expect(errorsOf(SharedInstance, { metadata, spec: { ...spec, ...change } }, old)).toEqual(errors)
  })

  test('an object cannot be renamed or moved', () => {
    expect(errorsOf(SharedInstance, { metadata: { name: 'y', namespace: 'other' }, spec }, old)).toEqual([
      'metadata.name is immutable',
      'metadata.namespace is immutable',
    ])
  })

  test('immutable fields that are objects are compared by value', () => {
    const binding = { metadata, roleRef: { apiGroup: 'g', kind: 'ClusterRole', name: 'viewer' }, subjects: [] }
    expect(errorsOf(RoleBinding, structuredClone(binding), binding)).toEqual([])
    expect(errorsOf(RoleBinding, { ...binding, roleRef: { ...binding.roleRef, name: 'admin' } }, binding)).toEqual([
      'roleRef is immutable',
    ])
  })
})

test('rules of a kind are checked when the body parses', () => {
  const holds = ({ low, high }: { low: number; high: number }): boolean => low <= high
  const Ranged = defineKind({
    kind: 'Ranged',
    plural: 'rangeds',
    shortNames: [],
    namespaced: true,
    description: 'A kind with a rule.',
    spec: z.object({ low: z.int(), high: z.int() }),
    status: z.object({}),
    rules: [{ cel: 'self.low <= self.high', message: 'must not be below low', field: 'spec.high', holds }],
    columns: [],
  })
  expect(errorsOf(Ranged, { metadata, spec: { low: 2, high: 1 } })).toEqual(['spec.high must not be below low'])
  expect(errorsOf(Ranged, { metadata, spec: { low: 2, high: 'x' } })).toEqual(['spec.high must be a number'])
})

test('no message contains the rejected value', () => {
  const { error } = z.object({ password: z.string().max(3) }).safeParse({ password: 'hunter2', hunter2: 1 })
  expect(JSON.stringify(error && fieldErrorsOf(error))).not.toContain('hunter2')
})
