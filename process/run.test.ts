import { pino } from 'pino'
import { expect, test } from 'vitest'
import { JSON_LINES } from './run.ts'

test('a line of the log has the name of its level and an RFC 3339 time', () => {
  const lines: string[] = []
  pino({ ...JSON_LINES, level: 'info' }, { write: (line: string) => void lines.push(line) }).warn({ name: 'x' }, 'a lamp is out')
  const [line = ''] = lines
  expect(JSON.parse(line)).toMatchObject({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
    msg: 'a lamp is out',
  })
})
