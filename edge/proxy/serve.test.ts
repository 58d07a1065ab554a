import { describe, expect, test } from 'vitest'
import { glimpseOf, glimpseOfStream } from './serve.ts'

describe('the tunnel of a malformed request', () => {
  test.each([
    { head: 'CONNECT / HTTP/1.1\r\nHost: A.example:80\r\n', glimpse: { hostname: 'a.example', method: 'CONNECT', path: '/' } },
    { head: 'GET /a?b HTTP/9\r\nX: y\r\nhost:\ta \r\n', glimpse: { hostname: 'a', method: 'GET', path: '/a' } },
    { head: `${'M'.repeat(99)} /a HTTP/1.1\r\nHost: a\r\n`, glimpse: { hostname: 'a', method: 'M'.repeat(32), path: '/a' } },
    { head: 'nonsense\r\nHost: a\r\n', glimpse: { hostname: 'a', method: '', path: '' } },
    { head: 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n', glimpse: undefined },
    { head: 'GET / HTTP/1.1\r\nX-Host: a\r\n', glimpse: undefined },
    { head: 'GET http://b/x HTTP/1.1\r\nHost: a\r\n', glimpse: { hostname: 'b', method: 'GET', path: '/x' } },
    { head: 'GET http://b/x HTTP/1.0\r\nX: a\r\n', glimpse: { hostname: 'b', method: 'GET', path: '/x' } },
    { head: 'GET http://b/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n', glimpse: undefined },
    { head: 'GET http://A:1/x?y HTTP/1.1\r\nHost: a\r\n', glimpse: { hostname: 'a', method: 'GET', path: '/x' } },
    { head: 'GET / HTTP/1.1\r\nHost: cut of', glimpse: undefined },
    { head: '', glimpse: undefined },
  ])('is read in $head', ({ head, glimpse }) => expect(glimpseOf(head)).toEqual(glimpse))

  test('is read in time linear in the head’s length', () => {
    const long = `GET / HTTP/1.1\r\nHost:${' '.repeat(65_000)}a\r\n`
    expect(glimpseOf(long)?.hostname).toBe('a')
  })

  test.each([
    { raw: [':method', 'CONNECT', ':authority', 'A.b:443'], glimpse: { hostname: 'a.b', method: 'CONNECT', path: '' } },
    { raw: [':method', 'GET', ':path', '/a?b', 'host', 'a'], glimpse: { hostname: 'a', method: 'GET', path: '/a' } },
    { raw: [':authority', 'a', 'host', 'A'], glimpse: { hostname: 'a', method: '', path: '' } },
    { raw: [':authority', 'a', 'host', 'b'], glimpse: undefined },
    { raw: [':method', ':authority', 'host'], glimpse: undefined },
  ])('is read in the header block $raw', ({ raw, glimpse }) => expect(glimpseOfStream(raw)).toEqual(glimpse))
})
