import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Channel, ChannelEvents } from '../channels/channel.ts'
import { parseTarget, readSocksReply, socksRequest, throughSocks } from './socks.ts'

const OK = Buffer.from('05000500000100000000' + '0000', 'hex')

describe('a target', () => {
  test.each([
    ['localhost:80', { host: 'localhost', port: 80 }],
    ['127.0.0.1:3000', { host: '127.0.0.1', port: 3000 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
    ['db.internal:0', undefined],
    ['localhost:65536', undefined],
    ['[localhost]:80', undefined],
    ['localhost', undefined],
    ['', undefined],
  ])('%s is %j', (text, target) => {
    expect(parseTarget(text)).toEqual(target)
  })
})

describe('a SOCKS request', () => {
  test.each([
    [{ host: 'localhost', port: 80 }, '05010005010003096c6f63616c686f73740050'],
    [{ host: '10.0.0.7', port: 8080 }, '0501000501000' + '10a0000071f90'],
    [{ host: '::ffff:1.2.3.4', port: 1 }, '05010005010004' + '00000000000000000000ffff01020304' + '0001'],
    [{ host: '2001:db8::5', port: 443 }, '05010005010004' + '20010db8000000000000000000000005' + '01bb'],
  ])('to %j has the bytes of RFC 1928', (target, hex) => {
    expect(socksRequest(target).toString('hex')).toBe(hex)
  })
})

describe('a SOCKS answer', () => {
  const address = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => Buffer.concat([Buffer.of(1), bytes])),
    fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.concat([Buffer.of(4), bytes])),
    fc.uint8Array({ maxLength: 255 }).map((bytes) => Buffer.concat([Buffer.of(3, bytes.length), bytes])),
  )

  test('is read completely, without the bytes after it', () => {
    fc.assert(
      fc.property(address, fc.uint8Array({ maxLength: 40 }), (bound, rest) => {
        const answer = Buffer.concat([Buffer.of(5, 0, 5, 0, 0), bound, Buffer.of(0, 80)])
        expect(readSocksReply(Buffer.concat([answer, rest]))).toEqual({ length: answer.length })
        for (let cut = 0; cut < answer.length; cut += 1) expect(readSocksReply(answer.subarray(0, cut))).toBe('more')
      }),
    )
  })

  test('parsed from random bytes is one of its kinds', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const read = readSocksReply(Buffer.from(bytes))
        expect(typeof read === 'string' ? ['more', 'refused', 'prohibited'].includes(read) : read.length <= bytes.length).toBe(
          true,
        )
      }),
    )
  })

  test.each([
    ['an HTTP server', Buffer.from('HTTP/1.1 400'), 'refused'],
    ['no method', Buffer.of(5, 255), 'refused'],
    ['a failure', Buffer.of(5, 0, 5, 5), 'refused'],
    ['a rule', Buffer.of(5, 0, 5, 2), 'prohibited'],
  ])('from %s refuses', (_, bytes, read) => {
    expect(readSocksReply(bytes)).toBe(read)
  })
})

describe('a channel through SOCKS', () => {
  function opened() {
    const said: string[] = []
    const written: Buffer[] = []
    const inside: { events?: ChannelEvents } = {}
    const inner: Channel = {
      write: (chunk) => written.push(chunk) > 0,
      end: () => void said.push('inner end'),
      destroy: () => inside.events?.closed({ lost: true }),
      pause: () => void said.push('inner pause'),
      resume: () => void said.push('inner resume'),
    }
    const events: ChannelEvents = {
      opened: () => void said.push('opened'),
      refused: (why) => void said.push(`refused ${why}`),
      data: (chunk) => void said.push(`data ${chunk.toString()}`),
      drained: () => void said.push('drained'),
      ended: () => void said.push('ended'),
      closed: ({ lost }) => void said.push(lost ? 'lost' : 'closed'),
    }
    const channel = throughSocks(
      { target: { host: 'localhost', port: 80 }, events, onRefused: () => said.push('refusal shown') },
      (inner_) => {
        inside.events = inner_
        return inner
      },
    )
    const end = inside.events
    if (!end) throw new Error('it opened nothing')
    return { channel, said, written, end }
  }

  test('sends the request first, then forwards written bytes and the bytes after the answer', () => {
    const { channel, said, written, end } = opened()
    expect(channel.write(Buffer.from('hello'))).toBe(false)
    end.opened()
    expect(written.map((chunk) => chunk.toString('hex'))).toEqual([socksRequest({ host: 'localhost', port: 80 }).toString('hex')])
    for (const byte of OK) end.data(Buffer.of(byte))
    end.data(Buffer.from('world'))
    expect(written.at(-1)?.toString()).toBe('hello')
    end.closed({ lost: false })
    expect(said).toEqual(['opened', 'drained', 'data world', 'closed'])
  })

  test('is refused when the target is', () => {
    const { said, end } = opened()
    end.opened()
    end.data(Buffer.of(5, 0, 5, 5, 0, 1))
    expect(said).toEqual(['refusal shown', 'refused connect_failed'])
  })

  test('is refused when the answer never ends', () => {
    const { said, end } = opened()
    end.opened()
    end.ended()
    expect(said).toEqual(['refusal shown', 'refused connect_failed'])
  })

  test('is closed, not refused, when its user destroys it', () => {
    const { channel, said, end } = opened()
    end.opened()
    channel.destroy()
    expect(said).toEqual(['lost'])
  })
})
