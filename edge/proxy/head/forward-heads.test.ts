import { expect, test } from 'vitest'
import { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { addedFields, forwardedRequest, responseMessage, scopedCookie } from './forward-heads.ts'
import { type Visit, isRejection, readRequestHead, type RequestHead } from './request-head.ts'
import { type After, type Reply, readResponseHead } from './response-head.ts'
import { createModifications, type Modifications } from './forward-fields.ts'

const NONE: Modifications = { removed: undefined, added: [], lines: '', cookies: [] }
const SOME: Modifications = { removed: undefined, added: [{ name: 'A', value: 'b' }], lines: 'A: b\r\n', cookies: [] }

function request(): RequestHead {
  const head = readRequestHead('GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: 9.9.9.9\r\n')
  if (isRejection(head)) throw new Error(head.detail)
  return head
}

const VISIT: Visit = { id: 'one', scheme: 'http', peer: '1.1.1.1', trusted: false, port: 80 }
const BODIES = [undefined, Buffer.from('body')]
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
])('a repeated head is forwarded as the first: $of', ({ visit, modifications }) => {
  for (const first of BODIES) {
    const head = request()
    said(head, VISIT, NONE, first)
    for (let times = 2; times <= 4; times++)
      expect(said(head, visit, modifications, first), `time ${times}`).toBe(said(request(), visit, modifications, first))
  }
})

test('the body follows the head, whatever its id is', () => {
  const head = request()
  for (const id of ['one', 'two', 'three', 'four', 'five', 'six', 'x', 'yz', 'z']) {
    const text = said(head, { ...VISIT, id }, SOME, Buffer.from('body'))
    expect(text).toMatch(/^GET \/ HTTP\/1\.1\r\nHost: a\.test\r\nX-Forwarded-For: 1\.1\.1\.1\r\n/)
    expect(text).toMatch(new RegExp(`\r\nX-Request-Id: ${id}\r\nA: b\r\n\r\nbody$`))
  }
})

const DAY_MS = 86_400_000

function reply(differs: Partial<Reply> = {}, dated = ''): Reply {
  const head = readResponseHead(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b; Domain=test\r\n${dated}`)
  if (!head) throw new Error('it is not valid')
  return { head, kind: 'length', host: 'a.test', modifications: NONE, ...differs }
}

/** Response forwarded at this time, in milliseconds since the epoch. */
function passedOn(message: Reply, how: { after?: After; chunked?: boolean; first?: Buffer | undefined; at?: number } = {}) {
  const { after = 'keep', chunked = false, first, at = 0 } = how
  return responseMessage(message, { after, chunked, first, date: () => at }).toString('latin1')
}

test.each<{ of: string; differs: Partial<Reply>; after: After; chunked: boolean }>([
  { of: 'the same', differs: {}, after: 'keep', chunked: false },
  { of: 'another kind', differs: { kind: 'close' }, after: 'keep', chunked: false },
  { of: 'another host', differs: { host: 'test' }, after: 'keep', chunked: false },
  { of: 'other modifications', differs: { modifications: SOME }, after: 'keep', chunked: false },
  { of: 'the last', differs: {}, after: 'close', chunked: false },
  { of: 'in chunks', differs: {}, after: 'keep', chunked: true },
])('a repeated response is forwarded as the first: $of', ({ differs, after, chunked }) => {
  for (const dated of ['', 'Date: today\r\n']) {
    for (const first of BODIES) {
      const { head } = reply({}, dated)
      passedOn(reply({ head }), { first })
      const once = passedOn(reply(differs, dated), { after, chunked, first })
      expect(once).toMatch(first ? /\r\n\r\nbody$/ : /[^\n]\r\n\r\n$/)
      for (let times = 2; times <= 4; times++)
        expect(passedOn(reply({ ...differs, head }), { after, chunked, first }), `time ${times}`).toBe(once)
    }
  }
})

test.each([
  { of: 'that has none', head: 'HTTP/1.1 200 OK\r\n', date: 'Fri, 02 Jan 1970 00:00:00 GMT' },
  { of: 'that has one', head: 'HTTP/1.1 200 OK\r\nDate: yesterday\r\n', date: 'yesterday' },
  { of: 'that is not final', head: 'HTTP/1.1 103 Early Hints\r\n', date: undefined },
])('a response $of gets the Date of its forwarding: $date', ({ head: text, date }) => {
  const head = readResponseHead(text)
  if (!head) throw new Error('it is not valid')
  const dates = [0, 0, DAY_MS].map((at) => {
    const said = passedOn(reply({ head, kind: 'none' }), { at })
    expect(said).toMatch(/[^\n]\r\n\r\n$/)
    return /^Date: (.*)\r$/m.exec(said)?.[1]
  })
  expect(dates.at(-1)).toBe(date)
})

test('the settings of a tunnel for Date apply', () => {
  const { response } = createModifications()(
    TunnelConfig.parse({ liveHeaderModifications: [{ type: 'response', name: 'Date', value: '' }] }),
  )
  expect(passedOn(reply({ modifications: response }))).not.toMatch(/^Date:/m)
})

test('cookies of a tunnel’s settings are scoped to its host', () => {
  const value = 'sid=evil; Domain=test; Path=/'
  const { response } = createModifications()(
    TunnelConfig.parse({ liveHeaderModifications: [{ type: 'response', name: 'Set-Cookie', value }] }),
  )
  const given = reply({ modifications: response })
  expect(passedOn(given).match(/^Set-Cookie: .*\r$/gm)).toEqual(['Set-Cookie: sid=evil; Path=/\r'])
  expect(addedFields(given)).toEqual([['Set-Cookie', 'sid=evil; Path=/']])
})

test.each([
  ['a=1', 'a=1'],
  ['a=1; Path=/; Domain=t.test; Secure', 'a=1; Path=/; Secure'],
  ['a=1; domain = .T.test', 'a=1'],
  ['a=1;Domain=other.t.test', 'a=1'],
  ['a=1; Domain=me.t.test', 'a=1; Domain=me.t.test'],
  ['a=1; Domain=.ME.t.test; Path=/', 'a=1; Domain=.ME.t.test; Path=/'],
  ['a=1; Domain=x.me.t.test', 'a=1; Domain=x.me.t.test'],
  ['a=1; Domain=evilme.t.test', 'a=1'],
  ['a=1; Domain=me.t.test; Domain=t.test', 'a=1; Domain=me.t.test'],
  ['a=1; Domain', 'a=1'],
  ['a=1; Domain=; Path=/', 'a=1; Path=/'],
  ['a=1; DOMAIN=..t.test', 'a=1'],
  ['a=1; Domain=t.test.', 'a=1'],
  ['a=1; Domain=me.t.test.', 'a=1'],
  ['a=1; Domain=test', 'a=1'],
  ['a=1; Domain="t.test"', 'a=1'],
  ['a=1; Domain=me.t.test, b=2; Domain=t.test', 'a=1'],
  ['a="x; Domain=t.test"', 'a="x'],
  ['; Domain=t.test', ''],
  ['a=1; Domain=t.test; Domain=me.t.test; domain=.t.test', 'a=1; Domain=me.t.test'],
  ['__Host-a=1; Secure; Path=/; Domain=t.test', '__Host-a=1; Secure; Path=/'],
  ['__Secure-a=1; Secure; Domain=.t.test', '__Secure-a=1; Secure'],
  ['a=domain=t.test; Path=/', 'a=domain=t.test; Path=/'],
])('the cookie %s becomes %s', (value, wanted) => expect(scopedCookie(value, 'me.t.test')).toBe(wanted))
