import fc from 'fast-check'
import { expect, test } from 'vitest'
import { METHOD_MAX } from '../shared/tunnel-decisions.ts'
import { requestRecord } from '../test/conformance/journal/records.ts'
import { requestBatch, RequestLines, PATH_MAX, requestRows } from './request-text.ts'

const unit = fc.oneof(
  fc.constantFrom('\r', '\n', '@', '\0', '\u{1f600}', 'é', '\u20ac'),
  fc.string({ minLength: 1, maxLength: 1 }),
)
const text = fc.string({ unit, maxLength: 40 })
const count = fc.oneof(fc.maxSafeNat(), fc.nat(), fc.constantFrom(0, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31))
const records = fc.array(
  fc
    .record({
      tunnel: fc.constantFrom('one', 'two'),
      at: fc.constantFrom(0, 1, 1_763_800_000_000, 2 ** 48 - 1),
      path: text,
      method: text,
      reason: fc.option(text.filter((reason) => reason !== '')),
      durationMs: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), count),
      bytesIn: count,
      bytesOut: count,
      status: fc.integer({ min: 100, max: 599 }),
      sourceIp: fc.constantFrom('203.0.113.1', '2001:db8::1'),
      origin: fc.constantFrom('edge' as const, 'backend' as const),
      protocol: fc.constantFrom('h2' as const, 'http/1.1' as const),
    })
    .map((about) => requestRecord(about)),
  { maxLength: 20 },
)
const oneLine = (value: string) => value.replaceAll(/[\n\r]/g, ' ')

test('any record is read back unchanged, apart from line ends', () => {
  fc.assert(
    fc.property(records, (given) => {
      const expected = given.map((record) => ({
        ...record,
        path: oneLine(record.path),
        method: oneLine(record.method.slice(0, METHOD_MAX)),
        reason: record.reason === null ? null : oneLine(record.reason),
        // There is one zero.
        durationMs: record.durationMs + 0,
      }))
      expect(requestRows(requestBatch(given))).toEqual(expected)
    }),
  )
})

test('a batch grows without bound, and the next one starts empty', () => {
  const lines = new RequestLines()
  const given = Array.from({ length: 500 }, (_, index) =>
    requestRecord({ tunnel: `t${index % 3}`, path: `/${'ü'.repeat(1_000)}` }),
  )
  for (let round = 0; round < 2; round += 1) {
    for (const record of given) lines.add(record)
    expect(requestRows(lines.take())).toEqual(given)
  }
  expect(lines.take()).toHaveLength(0)
})

test('the longest UTF-8 record fits anywhere in a batch', () => {
  const longest = '\u20ac'.repeat(PATH_MAX)
  const [least, most] = [-Number.MAX_VALUE / 3, -Number.MIN_VALUE]
  const given = {
    path: longest,
    method: '\u20ac'.repeat(METHOD_MAX),
    reason: longest,
    tunnel: '\u20ac',
    status: least,
    durationMs: least,
  }
  const long = requestRecord({ ...given, at: 1, bytesIn: most, bytesOut: most, sourceIp: longest })
  for (let before = 0; before < 500; before += 7) {
    const short = requestRecord({ tunnel: 's', path: 'x'.repeat(PATH_MAX - before) })
    const batch = [...Array.from({ length: 29 }, () => short), long]
    expect(requestRows(requestBatch(batch)).at(-1)).toEqual(long)
  }
})

test('a request that fails to be written leaves no bytes in the batch', () => {
  const lines = new RequestLines()
  const [one, other] = [requestRecord({ tunnel: 'one' }), requestRecord({ tunnel: 'other' })]
  lines.add(one)
  expect(() => lines.add({ ...other, protocol: undefined as unknown as 'h2' })).toThrow(TypeError)
  lines.add(other)
  expect(requestRows(lines.take())).toEqual([one, other])
})

test('an id that begins with @ is not read as a tunnel', () => {
  const [row] = requestRows(requestBatch([requestRecord({ tunnel: 't', id: '@other' })]))
  expect([row?.id, row?.tunnel]).toEqual([' other', 't'])
})

test('a known tunnel has no line', () => {
  const lines = new RequestLines('t')
  for (let round = 0; round < 2; round += 1) {
    lines.add(requestRecord({ tunnel: 't', id: 'x' }))
    expect(Buffer.from(lines.take()).toString()).toMatch(/^x\n/)
  }
})

test('a long path is cut', () => {
  const [row] = requestRows(requestBatch([requestRecord({ tunnel: 't', path: 'x'.repeat(PATH_MAX + 1) })]))
  expect(row?.path).toHaveLength(PATH_MAX)
})

test('a long method is cut', () => {
  const [row] = requestRows(requestBatch([requestRecord({ tunnel: 't', method: 'M'.repeat(30_000) })]))
  expect(row?.method).toHaveLength(METHOD_MAX)
})

test('a batch truncated anywhere in a request is rejected', () => {
  const batch = requestBatch([requestRecord({ tunnel: 't' }), requestRecord({ tunnel: 'u' })])
  const first = requestBatch([requestRecord({ tunnel: 't' })]).length
  const isEnd = (length: number) => [0, '@t\n'.length, first, first + '@u\n'.length].includes(length)
  for (let length = 1; length < batch.length; length += 1) {
    if (!isEnd(length)) expect(() => requestRows(batch.subarray(0, length)), String(length)).toThrow('truncated')
  }
})
