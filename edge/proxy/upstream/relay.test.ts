import { describe, expect, test } from 'vitest'
import { HeadReader } from '../http1/head-reader.ts'
import { createModifications } from '../head/forward-fields.ts'
import { Relay } from './relay.ts'
import { readRequestHead, type RequestHead } from '../head/request-head.ts'
import { readResponseHead, type ResponseHead } from '../head/response-head.ts'
import { TunnelConfig } from '../../../crds/tunnel-config.ts'

const request = readRequestHead('GET / HTTP/1.1\r\nHost: a.t.test\r\n') as RequestHead
const config = TunnelConfig.parse({ liveHeaderModifications: [{ name: 'X-User', value: '', type: 'response' }] })
const modifications = createModifications()(config).response

/** What a visitor receives of a response that arrives in buffers of this size. */
function relayed(text: string, size: number, protocol: 'http/1.1' | 'h2') {
  const seen = { status: 0, body: '', end: 'none' }
  const take = (chunk: Buffer | undefined) => {
    seen.body += chunk?.toString('latin1') ?? ''
    return true
  }
  const relay = new Relay({
    visitor: {
      wire: protocol === 'http/1.1',
      bytesIn: 0,
      answer: () => undefined,
      interim: () => undefined,
      respond(reply, first) {
        seen.status = reply.head.status
        return take(first)
      },
      upgrade: () => false,
      body: take,
      end: () => undefined,
      endBytes: () => undefined,
      cut: () => undefined,
      hold: () => undefined,
      resume: () => undefined,
    },
    owner: {
      sent: true,
      responseHeld: () => undefined,
      responseInvalid: () => void (seen.end = 'invalid'),
      responseBroken: () => void (seen.end = 'broken'),
      responseEnded: (keeps) => void (seen.end = keeps ? 'kept' : 'closed'),
    },
    request,
    protocol,
    host: 'a.t.test',
    modifications,
  })
  relay.from(new HeadReader<ResponseHead | undefined>(readResponseHead, undefined))
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += size) relay.data(Buffer.from(bytes.subarray(at, at + size)))
  return { ...seen, trailers: relay.trailers, bytesOut: relay.bytesOut }
}

const CHUNKED = 'HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n'

describe('a chunked response, however it is split', () => {
  test.each([
    { does: 'without trailers', sent: '', trailers: '' },
    { does: 'with trailers', sent: 'X-T: 1\r\nx-u:\r\n', trailers: 'X-T: 1\r\nx-u:\r\n' },
    { does: 'with trailers that are partly forwarded', sent: 'X-Hop: 1\r\nX-T: 1\r\nx-user: 1\r\n', trailers: 'X-T: 1\r\n' },
    { does: 'with trailers that are not forwarded', sent: 'X-Hop: 1\r\nX_User: 1\r\n', trailers: '' },
  ])('$does is passed on', ({ sent, trailers }) => {
    const text = `${CHUNKED}0\r\n${sent}\r\n`
    for (let size = 1; size <= text.length; size++) {
      const whole = { status: 200, end: 'kept', trailers, bytesOut: 5 }
      expect(relayed(text, size, 'http/1.1')).toEqual({ ...whole, body: `5;a=b\r\nhello\r\n0\r\n${trailers}\r\n` })
      expect(relayed(text, size, 'h2')).toEqual({ ...whole, body: 'hello' })
    }
  })

  test('with a forbidden trailer is cut off before its end', () => {
    const text = `${CHUNKED}0\r\nX-T: 1\r\nSet-Cookie: a\r\n\r\n`
    for (let size = 1; size < text.length; size++) {
      const { body, end } = relayed(text, size, 'http/1.1')
      expect([body.endsWith('\r\n\r\n'), ['broken', 'invalid'].includes(end)]).toEqual([false, true])
    }
  })
})

test('a 205 over HTTP/2 is sent without its body, and its connection is reused when the body came with the head', () => {
  const head = 'HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\n'
  const text = `${head}hello`
  for (let size = 1; size <= text.length; size++) {
    const isThere = Math.ceil(head.length / size) * size >= text.length
    const end = isThere ? 'kept' : 'closed'
    expect(relayed(text, size, 'h2')).toEqual({ status: 205, end, trailers: '', body: '', bytesOut: 0 })
    expect(relayed(text, size, 'http/1.1')).toEqual({ status: 205, end: 'kept', trailers: '', body: 'hello', bytesOut: 5 })
  }
  expect(relayed(`${text}!`, text.length + 1, 'h2').end).toBe('closed')
})
