import { expect, test } from 'vitest'
import { linesOf, messagesOf, otherMessages } from './field-messages.ts'

const failure = {
  message: 'all of it',
  details: [
    { field: 'name', message: 'must be short' },
    { field: 'config.list[2]', message: 'must be an address' },
    { field: 'config.headers[0].name', message: 'must be a name' },
  ],
}

test('an error shows at its field, with the line in a list', () => {
  expect(messagesOf(failure, 'name')).toEqual(['This must be short.'])
  expect(messagesOf(failure, 'config.list')).toEqual(['Line 3 must be an address.'])
  expect(messagesOf(failure, 'config.headers')).toEqual(['Line 1, name, must be a name.'])
  expect(messagesOf(failure, 'config')).toEqual([])
  expect(messagesOf(undefined, 'name')).toEqual([])
})

test('an error that is the whole message is a sentence of its own', () => {
  const message = 'unknown plan: tiny; these fit: small'
  expect(messagesOf({ message, details: [{ field: 'plan', message }] }, 'plan')).toEqual([
    'Unknown plan: tiny; these fit: small.',
  ])
})

test('errors without a field of the form show above its buttons', () => {
  expect(otherMessages(failure, ['name', 'config.list'])).toBe('config.headers[0].name must be a name')
  expect(otherMessages(failure, ['name', 'config.list', 'config.headers'])).toBeUndefined()
  expect(otherMessages({ message: 'not now', details: [] }, ['name'])).toBe('not now')
})

test('empty lines of a list are not items', () => {
  expect(linesOf(' a \n\n\tb\r\n')).toEqual(['a', 'b'])
})
