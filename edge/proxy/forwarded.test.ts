import { expect, test } from 'vitest'
import { forwardedRequest, type Visit } from './forward-request.ts'
import { type After, forwardedResponse, type Reply } from './forward-response.ts'
import type { Modifications } from './modifications.ts'
import { isStop, readRequestHead, type RequestHead } from './request-head.ts'
import { readResponseHead } from './response-head.ts'

const NONE: Modifications = { removed: undefined, added: [], lines: '' }
const SOME: Modifications = { removed: undefined, added: [{ name: 'A', value: 'b' }], lines: 'A: b\r\n' }

function request(): RequestHead {
  const head = readRequestHead('GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: 9.9.9.9\r\n')
  if (isStop(head)) throw new Error(head.detail)
  return head
}

const VISIT: Visit = { id: 'one', scheme: 'http', peer: '1.1.1.1', trusted: false, port: 80 }
const said = (head: RequestHead, visit: Visit, modifications: Modifications, first?: Buffer) =>
  forwardedRequest(head, visit, modifications, first).toString('latin1')

test.each([
  { of: 'the same', visit: VISIT, modifications: NONE },
  { of: 'another id', visit: { ...VISIT, id: 'another' }, modifications: NONE },
  { of: 'another scheme', visit: { ...VISIT, scheme: 'https' as const }, modifications: NONE },
  { of: 'another peer', visit: { ...VISIT, peer: '2.2.2.2' }, modifications: NONE },
  { of: 'a balancer', visit: { ...VISIT, trusted: true }, modifications: NONE },
  { of: 'another port', visit: { ...VISIT, port: 81 }, modifications: NONE },
  { of: 'other modifications', visit: VISIT, modifications: SOME },
])('a head that was passed on before is passed on as if it were the first: $of', ({ visit, modifications }) => {
  const head = request()
  said(head, VISIT, NONE)
  expect(said(head, visit, modifications)).toBe(said(request(), visit, modifications))
})

test('the body follows the head', () => {
  const head = request()
  for (const id of ['one', 'two']) {
    const text = said(head, { ...VISIT, id }, SOME, Buffer.from('body'))
    expect(text).toMatch(/^GET \/ HTTP\/1\.1\r\nHost: a\.test\r\nX-Forwarded-For: 1\.1\.1\.1\r\n/)
    expect(text).toMatch(new RegExp(`\r\nX-Request-Id: ${id}\r\nA: b\r\n\r\nbody$`))
  }
})

function reply(differs: Partial<Reply> = {}): Reply {
  const head = readResponseHead('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b; Domain=test\r\n')
  if (!head) throw new Error('it is not valid')
  return { head, kind: 'length', host: 'a.test', modifications: NONE, ...differs }
}

test.each<{ of: string; differs: Partial<Reply>; after: After; chunked: boolean }>([
  { of: 'the same', differs: {}, after: 'keep', chunked: false },
  { of: 'another kind', differs: { kind: 'close' }, after: 'keep', chunked: false },
  { of: 'another host', differs: { host: 'test' }, after: 'keep', chunked: false },
  { of: 'other modifications', differs: { modifications: SOME }, after: 'keep', chunked: false },
  { of: 'the last', differs: {}, after: 'close', chunked: false },
  { of: 'in chunks', differs: {}, after: 'keep', chunked: true },
])('a response that was passed on before is passed on as if it were the first: $of', ({ differs, after, chunked }) => {
  const { head } = reply()
  forwardedResponse(reply({ head }), 'keep', false)
  expect(forwardedResponse(reply({ ...differs, head }), after, chunked)).toBe(forwardedResponse(reply(differs), after, chunked))
})
