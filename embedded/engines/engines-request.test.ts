import { expect, test } from 'vitest'
import { parseEnginesRequest } from './engines-request.ts'

test.each([
  { argv: ['list'], ok: { command: 'list' } },
  { argv: ['add', 'mysql-8.0.29'], ok: { command: 'add', motors: ['mysql-8.0.29'] } },
  {
    argv: ['remove', 'mongodb-7.0.2', 'mariadb-10.7.4', 'mongodb-7.0.2'],
    ok: { command: 'remove', motors: ['mariadb-10.7.4', 'mongodb-7.0.2'] },
  },
])('$argv is a request', ({ argv, ok }) => {
  expect(parseEnginesRequest(argv)).toEqual({ ok })
})

test.each([
  { argv: [], says: 'must be list, add' },
  { argv: ['update'], says: 'must be list, add' },
  { argv: ['list', 'mysql-8.0.29'], says: 'must be list, add' },
  { argv: ['add'], says: 'add needs a motor, such as' },
  { argv: ['add', 'mysql-8'], says: '"mysql-8" is not a motor; the motors are mysql-5.7.38, ' },
  { argv: ['add', '--force'], says: "unknown option '--force'" },
])('$argv is rejected with a sentence', ({ argv, says }) => {
  expect(parseEnginesRequest(argv)).toEqual({ exit: 2, text: expect.stringContaining(says) as string })
})

test('--help names the commands and the motors', () => {
  const { text } = parseEnginesRequest(['--help']) as { text: string }
  for (const part of ['add <motor>', 'MOORING_ENGINES_CACHE', 'mongodb-7.0.2']) expect(text).toContain(part)
})
