import { expect, test } from 'vitest'
import { z } from 'zod'
import { boundedMap } from '../formats/fields.ts'
import { objectSchema } from './definition.ts'
import { CUSTOM_KINDS } from '../index.ts'
import { structuralSchema, type StructuralSchema, addTransitionRule, IMMUTABLE_MESSAGE } from './structural-schema.ts'

test.each([
  { does: 'a union', schema: z.object({ spec: z.object({ a: z.union([z.string(), z.int()]) }) }), says: 'spec.a: .* anyOf' },
  { does: 'a strict object', schema: z.object({ spec: z.strictObject({}) }), says: 'spec: .* additionalProperties' },
  { does: 'a union in a list', schema: z.object({ l: z.array(z.union([z.string(), z.int()])) }), says: 'l\\[\\]: .* anyOf' },
  { does: 'two patterns on one string', schema: z.object({ s: z.string().regex(/a/).regex(/b/) }), says: 's: .* allOf' },
])('structuralSchema rejects $does and names its path', ({ schema, says }) => {
  const convert = () => structuralSchema(schema)
  expect(convert).toThrow(expect.objectContaining({ code: 'not_structural' }))
  expect(convert).toThrow(new RegExp(says))
})

test('structuralSchema omits fields with defaults from required', () => {
  const schema = structuralSchema(z.object({ a: z.int(), b: z.int().max(3).default(2), c: z.string().optional() }))
  expect(schema.required).toEqual(['a'])
  expect(schema.properties?.b).toEqual({ type: 'integer', format: 'int64', maximum: 3, default: 2 })
})

test('structuralSchema bounds the keys of a map by a rule and their number by maxProperties', () => {
  const schema = structuralSchema(boundedMap(z.string().max(5), z.string().max(9), 2))
  expect(schema).toMatchObject({ maxProperties: 2, additionalProperties: { type: 'string', maxLength: 9 } })
  expect(schema['x-kubernetes-validations']?.[0]?.rule).toBe('self.all(key, size(key) <= 5)')
})

test('zod also rejects a bounded map with too many entries', () => {
  const map = boundedMap(z.string(), z.string(), 2)
  expect(map.safeParse({ a: '1', b: '2' }).success).toBe(true)
  expect(map.safeParse({ a: '1', b: '2', c: '3' }).success).toBe(false)
})

test.each(CUSTOM_KINDS)('every string, list and map of $kind is bounded', (kind) => {
  const { spec, status } = objectSchema(kind).properties ?? {}
  expect([...unbounded(spec, 'spec'), ...unbounded(status, 'status')]).toEqual([])
})

test('the check for bounds finds an unbounded string, list and map', () => {
  const schema = structuralSchema(
    z.object({ s: z.string(), l: z.array(z.object({ t: z.string() })), m: z.record(z.string(), z.int()) }),
  )
  expect(unbounded(schema, '')).toEqual(['.s', '.l', '.l[].t', '.m'])
})

/** Formats whose values have a maximum length. */
const BOUNDED_FORMATS = ['uuid']

function unbounded(schema: StructuralSchema | undefined, path: string): string[] {
  if (!schema) return []
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => unbounded(property, `${path}.${name}`))
  const bad = isUnbounded(schema) ? [path] : []
  return [...bad, ...inner, ...unbounded(schema.items, `${path}[]`), ...unbounded(schema.additionalProperties, `${path}{}`)]
}

function isUnbounded(schema: StructuralSchema): boolean {
  if (schema.type === 'array') return schema.maxItems === undefined
  if (schema.type === 'object') return schema.additionalProperties !== undefined && schema.maxProperties === undefined
  if (schema.type !== 'string' || schema.enum) return false
  return schema.maxLength === undefined && !BOUNDED_FORMATS.includes(schema.format ?? '')
}

const schema = () =>
  structuralSchema(
    z.object({
      spec: z.object({
        required: z.int(),
        defaulted: z.int().default(1),
        optional: z.int().optional(),
        group: z.object({ inner: z.int(), namespace: z.int().optional() }).optional(),
        always: z.object({ inner: z.int().optional() }).default({}),
      }),
    }),
  )

test.each([
  { does: 'to the field when it is required', path: 'spec.required', rule: 'self == oldSelf', fieldPath: undefined },
  { does: 'to the field when it has a default', path: 'spec.defaulted', rule: 'self == oldSelf', fieldPath: undefined },
  {
    does: 'to the parent of an optional field, and also forbids adding and removing it',
    path: 'spec.optional',
    rule: 'has(self.optional) ? has(oldSelf.optional) && self.optional == oldSelf.optional : !(has(oldSelf.optional))',
    fieldPath: '.optional',
  },
  {
    does: 'above an optional parent, whose removal would hide the change',
    path: 'spec.group.inner',
    rule:
      'has(self.group) && has(self.group.inner) ? has(oldSelf.group) && has(oldSelf.group.inner) && self.group.inner == oldSelf.group.inner' +
      ' : !(has(oldSelf.group) && has(oldSelf.group.inner))',
    fieldPath: '.group.inner',
  },
  {
    does: 'to a parent that a default always provides',
    path: 'spec.always.inner',
    rule: 'has(self.inner) ? has(oldSelf.inner) && self.inner == oldSelf.inner : !(has(oldSelf.inner))',
    fieldPath: '.inner',
  },
])('a transition rule is attached $does', ({ path, rule, fieldPath }) => {
  const root = schema()
  addTransitionRule(root, path)
  const depth = fieldPath === undefined ? 0 : fieldPath.split('.').length - 1
  const segments = path.split('.')
  const holder = segments
    .slice(0, segments.length - depth)
    .reduce<typeof root | undefined>((at, segment) => at?.properties?.[segment], root)
  const expected = { rule, message: IMMUTABLE_MESSAGE, ...(fieldPath === undefined ? {} : { fieldPath }) }
  expect(holder?.['x-kubernetes-validations']).toEqual([expected])
})

test('a field named like a CEL keyword is escaped in the rule, not in its path', () => {
  const root = schema()
  addTransitionRule(root, 'spec.group.namespace')
  const [rule] = root.properties?.spec?.['x-kubernetes-validations'] ?? []
  expect(rule?.rule).toContain('self.group.__namespace__ == oldSelf.group.__namespace__')
  expect(rule?.fieldPath).toBe('.group.namespace')
})

test('addTransitionRule rejects a path that the schema does not have', () => {
  expect(() => addTransitionRule(schema(), 'spec.group.typo')).toThrow(expect.objectContaining({ code: 'unknown_path' }))
})
