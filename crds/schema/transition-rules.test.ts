import { expect, test } from 'vitest'
import { z } from 'zod'
import { structuralSchema } from './structural-schema.ts'
import { addTransitionRule, IMMUTABLE_MESSAGE } from './transition-rules.ts'

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
