import { randomUUIDv7 } from 'node:crypto'
import { expect, test } from 'vitest'
import { bytesOfId, timeOfId, timeOfIdText } from './record-id.ts'

test.each([randomUUIDv7(), '00000000-0000-7000-8000-000000000000', 'FFFFFFFF-FFFF-7fff-bfff-ffffffffffff'])(
  'the text of %s says the same time as its bytes',
  (id) => {
    const bytes = bytesOfId(id)
    expect(timeOfIdText(id)).toBe(bytes && timeOfId(bytes))
  },
)

test.each([
  '',
  'x',
  '01890000-0000-4000-8000-000000000000',
  '01890000-0000-7000-8000-00000000000',
  '01890000-0000-7000-8000-000000000000 ',
])('%j is no id of a record', (text) => expect(timeOfIdText(text)).toBeUndefined())
