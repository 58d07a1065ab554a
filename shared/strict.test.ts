import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fieldErrorsOf } from './field-errors.ts'
import { looseDeep, strictDeep } from './strict.ts'

const Leaf = z.object({ a: z.int() })
interface Tree {
  a: number
  more?: Tree[] | undefined
}
const Tree: z.ZodType<Tree> = z.object({
  a: z.int(),
  get more() {
    return z.array(Tree).optional()
  },
})

const typo = { a: 1, typo: true }
const unknownFields = (schema: z.ZodType, value: unknown): string[] => {
  const { error } = strictDeep(schema).safeParse(value)
  return error ? fieldErrorsOf(error).map(({ field, message }) => `${field} ${message}`) : []
}

test.each([
  { where: 'the object itself', schema: Leaf, value: typo, field: 'typo' },
  { where: 'an object', schema: z.object({ in: Leaf }), value: { in: typo }, field: 'in.typo' },
  { where: 'optional', schema: z.object({ in: Leaf.optional() }), value: { in: typo }, field: 'in.typo' },
  { where: 'nullable', schema: z.object({ in: Leaf.nullable() }), value: { in: typo }, field: 'in.typo' },
  { where: 'default', schema: z.object({ in: Leaf.default({ a: 1 }) }), value: { in: typo }, field: 'in.typo' },
  { where: 'prefault', schema: z.object({ in: Leaf.prefault({ a: 1 }) }), value: { in: typo }, field: 'in.typo' },
  { where: 'readonly', schema: z.object({ in: Leaf.readonly() }), value: { in: typo }, field: 'in.typo' },
  { where: 'array', schema: z.object({ in: z.array(Leaf) }), value: { in: [{ a: 1 }, typo] }, field: 'in[1].typo' },
  { where: 'tuple', schema: z.object({ in: z.tuple([Leaf], Leaf) }), value: { in: [{ a: 1 }, typo] }, field: 'in[1].typo' },
  { where: 'record', schema: z.object({ in: z.record(z.string(), Leaf) }), value: { in: { x: typo } }, field: 'in.x.typo' },
  { where: 'union', schema: z.object({ in: z.union([z.string(), Leaf]) }), value: { in: typo }, field: 'in.typo' },
  { where: 'pipe', schema: z.object({ in: Leaf.transform(({ a }) => a) }), value: { in: typo }, field: 'in.typo' },
  { where: 'preprocess', schema: z.object({ in: z.preprocess((x) => x, Leaf) }), value: { in: typo }, field: 'in.typo' },
  { where: 'refine', schema: z.object({ in: Leaf.refine(() => true) }), value: { in: typo }, field: 'in.typo' },
  { where: 'lazy', schema: z.object({ in: z.lazy(() => Leaf) }), value: { in: typo }, field: 'in.typo' },
  { where: 'recursion', schema: Tree, value: { a: 1, more: [{ a: 1, more: [typo] }] }, field: 'more[0].more[0].typo' },
  {
    where: 'intersection',
    schema: z.intersection(Leaf, z.object({ b: z.int() })),
    value: { a: 1, b: 2, typo: 1 },
    field: 'typo',
  },
  {
    where: 'discriminated union',
    schema: z.discriminatedUnion('k', [Leaf.extend({ k: z.literal('x') }), z.object({ k: z.literal('y') })]),
    value: { k: 'x', ...typo },
    field: 'typo',
  },
])('an unknown field within $where is an error that names its path', ({ schema, value, field }) => {
  expect(unknownFields(schema, value)).toEqual([
    expect.stringMatching(`^${field.replace(/[[\]]/g, '\\$&')} is not a known field`),
  ])
})

test.each([
  { does: 'lists the known ones', known: ['a', 'b'], given: ['x'], list: '; known here: a, b' },
  { does: 'beside two others lists the known ones', known: ['a', 'b'], given: ['x', 'y', 'z'], list: '; known here: a, b' },
  { does: 'beside three others lists none', known: ['a', 'b'], given: ['w', 'x', 'y', 'z'], list: '' },
  { does: 'of an object with 13 fields lists none', known: Array.from('abcdefghijklm'), given: ['x'], list: '' },
  { does: 'of an object without fields lists none', known: [], given: ['x'], list: '' },
])('the error of an unknown field $does', ({ known, given, list }) => {
  const schema = z.object(Object.fromEntries(known.map((name) => [name, z.int().optional()])))
  const value = Object.fromEntries(given.map((name) => [name, 1]))
  expect(unknownFields(schema, value)).toEqual(given.map((name) => `${name} is not a known field${list}`))
})

describe('strictDeep', () => {
  const Body = z.object({ n: z.int().default(5), list: z.array(Leaf.extend({ b: z.string().default('x') })).optional() })

  test('keeps defaults and types of the given schema', () => {
    const parsed: z.output<typeof Body> = strictDeep(Body).parse({ list: [{ a: 1 }] } satisfies z.input<typeof Body>)
    expect(parsed).toEqual({ n: 5, list: [{ a: 1, b: 'x' }] })
  })

  test('keeps a schema loose that declares itself loose', () => {
    expect(unknownFields(z.looseObject({ a: z.int() }), typo)).toEqual([])
  })

  test('keeps checks and their messages', () => {
    const even = z.object({ a: z.int().refine((n) => n % 2 === 0, 'must be even') })
    expect(unknownFields(even, { a: 1 })).toEqual(['a must be even'])
  })

  test('does not change the given schema', () => {
    strictDeep(Leaf)
    expect(Leaf.parse(typo)).toEqual({ a: 1 })
  })
})

test('the strict form of a schema is cached', () => {
  expect(strictDeep(Leaf)).toBe(strictDeep(Leaf))
  expect(strictDeep(strictDeep(Leaf))).toBe(strictDeep(Leaf))
})

test('the loose form keeps unknown fields at every depth', () => {
  const value = { in: [{ a: 1, more: { x: 1 } }], also: 2 }
  expect(looseDeep(z.object({ in: z.array(Leaf) })).parse(value)).toEqual(value)
})

test('the strict form accepts every input without unknown fields, with the same result', () => {
  const Mixed = z.object({ s: z.string().optional(), l: z.array(Leaf).default([]), u: z.union([z.int(), Leaf]) })
  const leaf = fc.record({ a: fc.integer() })
  const value = fc.record({ s: fc.string(), l: fc.array(leaf), u: fc.oneof(fc.integer(), leaf) }, { requiredKeys: ['u'] })
  fc.assert(
    fc.property(value, (given) => {
      expect(strictDeep(Mixed).parse(given)).toEqual(Mixed.parse(given))
    }),
  )
})
