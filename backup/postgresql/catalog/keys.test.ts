import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  backupOf,
  corruptKey,
  corruptOf,
  logOf,
  manifestKey,
  newBackupId,
  parseStamp,
  parseWalKey,
  partKey,
  stamp,
  startOf,
  walKey,
} from './keys.ts'
import { parseSegment, segmentName } from './wal-names.ts'

const SEGMENT = fc.record({ timeline: fc.integer({ min: 1, max: 0xffffffff }), number: fc.integer({ min: 0, max: 2 ** 40 - 1 }) })
const TIME = fc.integer({ min: 0, max: Date.parse('9999-12-31T23:59:59.999Z') })

test('segmentName and parseSegment use the names of PostgreSQL', () => {
  expect(segmentName({ timeline: 1, number: 3 })).toBe('000000010000000000000003')
  expect(segmentName({ timeline: 2, number: 0x1ff })).toBe('0000000200000001000000FF')
  expect(parseSegment('000000010000000100000000')).toEqual({ timeline: 1, number: 256 })
})

test('parseSegment reverses segmentName', () => {
  fc.assert(
    fc.property(SEGMENT, (segment) => {
      expect(parseSegment(segmentName(segment))).toEqual(segment)
    }),
  )
})

test.each([
  '000000010000000000000100',
  '00000001000000000000000',
  '00000002.history',
  '000000010000000000000003.partial',
  '00000001000000000000000g',
])('%s is no segment', (name) => {
  expect(parseSegment(name)).toBeUndefined()
})

test('parseWalKey reverses walKey', () => {
  fc.assert(
    fc.property(
      SEGMENT,
      fc.option(TIME, { nil: undefined }),
      fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
      (segment, markedAt, id) => {
        const log = logOf({ systemIdentifier: `${id}`, timeline: segment.timeline })
        const wal = { log, segment, sha256: 'a'.repeat(64), markedAt }
        expect(parseWalKey(walKey(wal))).toEqual(wal)
      },
    ),
  )
})

test('parseWalKey returns undefined for other keys', () => {
  fc.assert(
    fc.property(fc.string(), (key) => {
      expect(parseWalKey(key)).toBeUndefined()
    }),
  )
  expect(parseWalKey(`wal/1-2/000000010000000000000003.${'a'.repeat(64)}.gz`)).toBeUndefined()
})

test('parseStamp reverses stamp, to the millisecond', () => {
  expect(stamp(Date.parse('2026-11-25T18:30:05.123Z'))).toBe('20261125T183005123Z')
  fc.assert(
    fc.property(TIME, (time) => {
      expect(parseStamp(stamp(time))).toBe(time)
    }),
  )
  expect(parseStamp('20261399T183005123Z')).toBeUndefined()
})

test('the keys of a backup name its id', () => {
  const id = newBackupId(Date.parse('2026-11-25T18:30:05.123Z'), '3f1c')
  expect(id).toBe('20261125T183005Z-3f1c')
  expect(new Date(startOf(id)).toISOString()).toBe('2026-11-25T18:30:05.000Z')
  expect(backupOf(manifestKey(id))).toBe(id)
  expect(backupOf(partKey(id, 12))).toBe(id)
  expect(backupOf('base/other/manifest.json')).toBeUndefined()
  expect(corruptOf(corruptKey(partKey(id, 1)))).toBe(partKey(id, 1))
  expect(corruptOf(partKey(id, 1))).toBeUndefined()
})
