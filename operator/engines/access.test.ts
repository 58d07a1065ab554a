import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { networkAround } from '../../crds/formats/address-range.ts'
import { admittedSources, engineSources, isAdmitted } from './access.ts'

const PODS = ['10.244.0.0/16', 'fd00:10::/56']

test.each([
  { name: 'no list admits every source', rule: {}, outside: undefined, engine: undefined },
  { name: 'an empty list admits the pods alone', rule: { sources: [] }, outside: [], engine: PODS },
  {
    name: 'a list is in CIDR notation, sorted, without repetitions',
    rule: { sources: ['2001:DB8::1', '198.51.100.7', '198.51.100.0/24', '192.0.2.0/24'] },
    outside: ['192.0.2.0/24', '198.51.100.0/24', '2001:db8::1/128'],
    engine: ['10.244.0.0/16', '192.0.2.0/24', '198.51.100.0/24', '2001:db8::1/128', 'fd00:10::/56'],
  },
  {
    name: 'a list of invalid entries admits no source',
    rule: { sources: ['198.51.100.0/240', '', '1.2.3.4/0'] },
    outside: [],
    engine: PODS,
  },
  {
    name: 'a private server has no source outside',
    rule: { isPrivate: true, sources: ['192.0.2.0/24'] },
    outside: [],
    engine: PODS,
  },
  { name: 'a private server without a list has none either', rule: { isPrivate: true }, outside: [], engine: PODS },
])('$name', ({ rule, outside, engine }) => {
  expect(admittedSources(rule, PODS)).toEqual({ outside, engine })
})

describe('a server in a container admits all or none', () => {
  test.each([
    { rule: {}, sources: undefined },
    { rule: { sources: ['127.0.0.0/8'] }, sources: undefined },
    { rule: { sources: ['0.0.0.0/0'] }, sources: undefined },
    { rule: { sources: ['192.0.2.0/24', '::1'] }, sources: [] },
    { rule: { sources: [] }, sources: [] },
  ])('for $rule.sources', ({ rule, sources }) => {
    expect(engineSources(rule, { isPublished: true })).toEqual(sources)
  })

  test('a private one admits its machine', () => {
    expect(engineSources({ sources: [] }, { isPublished: true, insiders: ['127.0.0.0/8'] })).toBeUndefined()
  })
})

test.each([
  { sources: undefined, address: '192.0.2.7', result: true },
  { sources: [], address: '192.0.2.7', result: false },
  { sources: ['192.0.2.0/24'], address: '192.0.2.7', result: true },
  { sources: ['192.0.2.0/24'], address: '::ffff:192.0.2.7', result: true },
  { sources: ['192.0.2.0/24'], address: '192.0.3.7', result: false },
  { sources: ['::/0'], address: '192.0.2.7', result: false },
  { sources: ['::/0'], address: '::ffff:192.0.2.7', result: false },
  { sources: ['0.0.0.0/0'], address: '2001:db8::1', result: false },
  { sources: ['0.0.0.0/0'], address: 'localhost', result: false },
])('$sources admits $address: $result', ({ sources, address, result }) => {
  expect(isAdmitted(sources, address)).toBe(result)
})

test('the engine admits every source outside and every insider', () => {
  const texts = fc.tuple(fc.ipV4(), fc.integer({ min: 8, max: 32 })).map(([address, bits]) => `${address}/${bits}`)
  const ranges = fc.array(texts.map((text) => networkAround(text) ?? text))
  fc.assert(
    fc.property(ranges, ranges, (sources, insiders) => {
      const { engine } = admittedSources({ sources }, insiders)
      for (const range of [...sources, ...insiders]) expect(isAdmitted(engine, range.split('/')[0] ?? '')).toBe(true)
    }),
  )
})
