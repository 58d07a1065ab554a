import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bodyKindOf, readResponseHead } from './response-head.ts'

describe('a status line', () => {
  test.each([
    ['HTTP/1.1 200 OK', 200],
    ['HTTP/1.1 200 ', 200],
    ['HTTP/1.1 404', 404],
    ['HTTP/1.0 599 \xe4', 599],
    ['HTTP/1.1 099 x', undefined],
    ['HTTP/1.1 600 x', undefined],
    ['HTTP/1.1 2x0 x', undefined],
    ['HTTP/1.1 2000', undefined],
    ['HTTP/1.1  200 OK', undefined],
    ['HTTP/1.1 200\tOK', undefined],
    ['HTTP/1.1 200 O\x00K', undefined],
    ['HTTP/1.2 200 OK', undefined],
    ['HTTP/2 200', undefined],
    ['http/1.1 200 OK', undefined],
    ['', undefined],
  ])('%j is %s', (line, status) => expect(readResponseHead(`${line}\r\nA: b\r\n`)?.status).toBe(status))
})

test.each([
  ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n', 'length'],
  ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n', 'none'],
  ['GET', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n', 'chunked'],
  ['GET', 'HTTP/1.1 200 OK\r\n', 'close'],
  ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n', 'none'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n', 'none'],
  ['GET', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n', 'none'],
])('the body of an answer to %s, %j, is %s', (method, text, kind) => {
  const head = readResponseHead(text)
  expect(head && bodyKindOf(head, method)).toBe(kind)
})

test.each([
  ['HTTP/1.1 204 No Content\r\n', true],
  ['HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n', true],
  ['HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n', false],
  ['HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n', false],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n', true],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n', false],
  ['HTTP/1.0 200 OK\r\nContent-Length: 5\r\n', false],
])('after %j another request can follow: %s', (text, keeps) => expect(readResponseHead(text)?.keepAlive).toBe(keeps))

test.each([
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n',
  'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n',
  'HTTP/1.1 200 OK\r\n A: b\r\n',
  'HTTP/1.1 200 OK\r\nA : b\r\n',
  'HTTP/1.1 200 OK\nA: b\r\n',
])('an ambiguous head is rejected: %j', (text) => expect(readResponseHead(text)).toBeUndefined())

test('random bytes never make it throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => void readResponseHead(`HTTP/1.1 200${text}\r\n`)),
  )
})
