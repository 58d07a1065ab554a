import fc from 'fast-check'
import { expect, test } from 'vitest'
import { METHOD_MAX } from '../crds/tunnel-decisions.ts'
import { requestRecord } from './conformance/records.ts'
import { PATH_MAX, requestRows, requestText } from './request-text.ts'

const text = fc.string({ unit: 'binary', maxLength: 40 })
const records = fc.array(
  fc
    .record({
      at: fc.constantFrom(0, 1, 1_763_800_000_000, 2 ** 48 - 1),
      path: text,
      method: text,
      reason: fc.option(text.filter((reason) => reason !== '')),
      durationMs: fc.double({ noNaN: true, noDefaultInfinity: true }),
      bytesOut: fc.maxSafeNat(),
      status: fc.integer({ min: 100, max: 599 }),
      origin: fc.constantFrom('edge' as const, 'backend' as const),
      protocol: fc.constantFrom('h2' as const, 'http/1.1' as const),
    })
    .map((about) => requestRecord({ tunnel: 't', ...about })),
  { maxLength: 20 },
)
const oneLine = (value: string) => (value.includes('\n') ? value.replaceAll(/[\n\r]/g, ' ') : value)

test('what is written is read again, whatever visitors send, but that it is on one line', () => {
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
      expect(requestRows(given.map(requestText).join(''))).toEqual(expected)
    }),
  )
})

test('a long path is cut', () => {
  const [row] = requestRows(requestText(requestRecord({ tunnel: 't', path: 'x'.repeat(PATH_MAX + 1) })))
  expect(row?.path).toHaveLength(PATH_MAX)
})

test('a long method is cut', () => {
  const [row] = requestRows(requestText(requestRecord({ tunnel: 't', method: 'M'.repeat(30_000) })))
  expect(row?.method).toHaveLength(METHOD_MAX)
})

test('a batch that was cut off is refused', () => {
  expect(() => requestRows(requestText(requestRecord({ tunnel: 't' })).slice(0, -20))).toThrow(TypeError)
})
