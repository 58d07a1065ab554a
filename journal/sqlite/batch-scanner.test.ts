import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idAt, requestRecord, WRONG_IDS } from '../../test/conformance/journal/records.ts'
import type { RequestRecord } from '../port.ts'
import { requestBatch, requestRows } from '../request-text.ts'
import { BatchScanner } from './batch-scanner.ts'
import { bytesOfId, timeOfId } from './ids.ts'

const unit = fc.oneof(
  fc.constantFrom('\r', '\n', '\r\n', '@', '\0', '\ud800', '\u{1f600}', 'é', '\ufeff'),
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }),
)
const text = fc.string({ unit, maxLength: 12 })
const number = fc.oneof(fc.maxSafeNat(), fc.nat(99), fc.maxSafeInteger(), fc.double(), fc.constantFrom(2 ** 53, 1e21, -0))
const records = fc.array(
  fc
    .record({
      id: fc.oneof(fc.nat(2 ** 40).map(idAt), fc.constantFrom(...WRONG_IDS)),
      tunnel: fc.constantFrom('one', 'zwölf', ''),
      path: text,
      method: text,
      sourceIp: fc.constantFrom('203.0.113.1', '203.0.113.10', '2001:db8::1', 'fe80::1%é', ''),
      reason: fc.option(text),
      at: number,
      status: number,
      durationMs: number,
      bytesIn: number,
      bytesOut: number,
      origin: fc.constantFrom('edge' as const, 'backend' as const),
      protocol: fc.constantFrom('h2' as const, 'http/1.1' as const),
    })
    .map((about) => requestRecord(about)),
  { maxLength: 12 },
)

/** Returns the fields that a scanner reads of each request of a batch. */
function scan(batch: Uint8Array) {
  const scanner = new BatchScanner(batch)
  const found = []
  while (scanner.next()) {
    const { start, end, time, tunnel, at, status, durationMs, bytesIn, bytesOut, ip, edge } = scanner
    const lines = Buffer.from(batch.subarray(start, end)).toString()
    found.push({ lines, time, tunnel, at, status, durationMs, bytesIn, bytesOut, ip, edge })
  }
  return found
}

function expected({ id, tunnel, at, status, durationMs, bytesIn, bytesOut, sourceIp: ip, origin }: RequestRecord) {
  const bytes = bytesOfId(id)
  return { time: bytes ? timeOfId(bytes) : NaN, tunnel, at, status, durationMs, bytesIn, bytesOut, ip, edge: origin === 'edge' }
}

test('the scanner reads the same values as the parser, for any content', () => {
  fc.assert(
    fc.property(records, (given) => {
      const batch = requestBatch(given)
      const rows = requestRows(batch)
      const found = scan(batch)
      expect(rows).toHaveLength(given.length)
      expect(found).toEqual(rows.map((row, index) => ({ lines: found[index]?.lines, ...expected(row) })))
      for (const [index, row] of rows.entries())
        expect(requestRows(Buffer.from(`@${row.tunnel}\n${found[index]?.lines ?? ''}`))).toEqual([row])
    }),
  )
})

test('any written number is read back as the same number', () => {
  const given = [
    0,
    9,
    10,
    2 ** 31 - 1,
    2 ** 31,
    999_999_999_999_999,
    Number.MAX_SAFE_INTEGER,
    17_453_436_473_142_411_000,
    -1,
    0.5,
    1e21,
  ].map((bytesIn) => requestRecord({ tunnel: 't', bytesIn, bytesOut: bytesIn }))
  const found = scan(requestBatch(given))
  expect(found.map(({ bytesIn }) => bytesIn)).toEqual(given.map(({ bytesIn }) => bytesIn))
  expect(found.map(({ bytesOut }) => bytesOut)).toEqual(given.map(({ bytesOut }) => bytesOut))
})

test.each(WRONG_IDS)('%j is an id without a time, and does not affect other requests', (id) => {
  const given = [{}, { id }, {}].map((about) => requestRecord({ tunnel: 't', at: 1_000, ...about }))
  expect(scan(requestBatch(given)).map(({ time }) => time)).toEqual([1_000, NaN, 1_000])
})

test('lines without a tunnel, and a request truncated anywhere, are rejected', () => {
  const lines = requestBatch([requestRecord({ tunnel: 't' })])
  const tunnel = '@t\n'.length
  expect(() => scan(lines.subarray(tunnel))).toThrow('truncated')
  expect(() => requestRows(lines.subarray(tunnel))).toThrow('truncated')
  for (let end = tunnel + 1; end < lines.length; end += 1)
    expect(() => scan(lines.subarray(0, end)), String(end)).toThrow('truncated')
})

test('the last of several successive tunnel lines counts', () => {
  const lines = requestBatch([requestRecord({ tunnel: 't' })])
  expect(scan(Buffer.concat([Buffer.from('@a\n@b\n'), lines.subarray('@t\n'.length)])).map(({ tunnel }) => tunnel)).toEqual(['b'])
})
