import { randomUUIDv7 } from 'node:crypto'
import { expect, test } from 'vitest'
import { bytesOfId, idOfBytes, timeOfId } from './ids.ts'
import { WRONG_IDS } from '../../test/conformance/journal/records.ts'

test.each([randomUUIDv7(), '00000000-0000-7000-8000-000000000000', 'ffffffff-ffff-7fff-bfff-ffffffffffff'])(
  'the bytes of %s are its text and its time',
  (id) => {
    const bytes = bytesOfId(id) ?? new Uint8Array()
    expect(idOfBytes(bytes)).toBe(id)
    expect(timeOfId(bytes)).toBe(parseInt(id.replace('-', '').slice(0, 12), 16))
  },
)

test.each(WRONG_IDS)('%j is not an id of a record', (text) => expect(bytesOfId(text)).toBeUndefined())
