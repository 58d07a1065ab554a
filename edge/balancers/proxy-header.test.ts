import { SocketAddress } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { binaryHeader, ipv4Of, lineFor } from '../../test/support/edge/balancer.ts'
import { readProxyHeader } from './proxy-header.ts'

const text = (line: string) => readProxyHeader(Buffer.from(line, 'latin1'))
const ipv6Of = (source: string) => Buffer.concat([Buffer.from(source, 'hex'), Buffer.alloc(16), Buffer.from([0x0f, 0xa0, 0, 22])])

describe('a line of version 1', () => {
  test.each([
    { line: 'PROXY TCP4 203.0.113.7 192.0.2.1 4000 443', source: { address: '203.0.113.7', port: 4000 } },
    { line: 'PROXY TCP6 2001:DB8:0::7 ::1 0 65535', source: { address: '2001:db8::7', port: 0 } },
    { line: 'PROXY TCP6 ::ffff:203.0.113.7 ::1 1 1', source: { address: '203.0.113.7', port: 1 } },
    { line: 'PROXY UNKNOWN', source: undefined },
    { line: 'PROXY UNKNOWN ffff::1 what ever', source: undefined },
  ])('$line is believed', ({ line, source }) => {
    expect(text(`${line}\r\nGET / `)).toEqual({ length: line.length + 2, source })
  })

  test.each([
    { does: 'of another family', line: 'PROXY TCP4 ::1 ::1 1 1' },
    { does: 'of two families', line: 'PROXY TCP4 1.2.3.4 ::1 1 1' },
    { does: 'of IPv6 that is IPv4', line: 'PROXY TCP6 1.2.3.4 1.2.3.4 1 1' },
    { does: 'of another protocol', line: 'PROXY UDP4 1.2.3.4 1.2.3.4 1 1' },
    { does: 'in small letters', line: 'PROXY tcp4 1.2.3.4 1.2.3.4 1 1' },
    { does: 'with a name', line: 'PROXY TCP4 localhost 1.2.3.4 1 1' },
    { does: 'with a zone', line: 'PROXY TCP6 fe80::1%lo ::1 1 1' },
    { does: 'with leading zeros', line: 'PROXY TCP4 01.2.3.4 1.2.3.4 1 1' },
    { does: 'with leading zeros in a port', line: 'PROXY TCP4 1.2.3.4 1.2.3.4 01 1' },
    { does: 'with a port too high', line: 'PROXY TCP4 1.2.3.4 1.2.3.4 65536 1' },
    { does: 'with two blanks', line: 'PROXY TCP4  1.2.3.4 1.2.3.4 1 1' },
    { does: 'with a blank at its end', line: 'PROXY TCP4 1.2.3.4 1.2.3.4 1 1 ' },
    { does: 'with a bare LF', line: 'PROXY TCP4 1.2.3.4 1.2.3.4 1 1\nX: y' },
    { does: 'without ports', line: 'PROXY TCP4 1.2.3.4 1.2.3.4' },
    { does: 'of something else', line: 'PROXY UNKNOWNS' },
    { does: 'that is too long', line: `PROXY UNKNOWN ${'x'.repeat(92)}` },
  ])('$does is not believed', ({ line }) => {
    expect(text(`${line}\r\n`)).toBe('invalid')
  })

  test('is invalid when it does not end within 107 bytes', () => {
    expect(text(`PROXY UNKNOWN ${'x'.repeat(92)}`)).toBe('more')
    expect(text(`PROXY UNKNOWN ${'x'.repeat(93)}`)).toBe('invalid')
    expect(text(`PROXY UNKNOWN ${'x'.repeat(91)}\r\n`)).toEqual({ length: 107, source: undefined })
  })
})

describe('a header of version 2', () => {
  const ipv6 = ipv6Of('20010db8000000000000000000000007')
  const mapped = ipv6Of('00000000000000000000ffffcb007107')
  const client = { address: '203.0.113.7', port: 4000 }
  test.each([
    { does: 'of IPv4', header: binaryHeader(), source: client },
    { does: 'of IPv4 with TLVs', header: binaryHeader({ tlvs: Buffer.alloc(524) }), source: client },
    {
      does: 'of IPv6',
      header: binaryHeader({ protocol: 0x21, addresses: ipv6 }),
      source: { address: '2001:db8::7', port: 4000 },
    },
    { does: 'of IPv4 as IPv6', header: binaryHeader({ protocol: 0x21, addresses: mapped }), source: client },
    { does: 'of a Unix socket', header: binaryHeader({ protocol: 0x31, addresses: Buffer.alloc(216) }), source: undefined },
    { does: 'of UDP', header: binaryHeader({ protocol: 0x12 }), source: undefined },
    { does: 'of nobody', header: binaryHeader({ protocol: 0, addresses: Buffer.alloc(0) }), source: undefined },
    { does: 'LOCAL', header: binaryHeader({ command: 0 }), source: undefined },
    { does: 'LOCAL of no family that there is', header: binaryHeader({ command: 0, protocol: 0xff }), source: undefined },
  ])('$does is believed', ({ header, source }) => {
    expect(readProxyHeader(Buffer.concat([header, Buffer.from('rest')]))).toEqual({ length: header.length, source })
  })

  const changed = (at: number, value: number) => {
    const header = binaryHeader()
    header[at] = value
    return header
  }
  test.each([
    { does: 'of version 1', header: changed(12, 0x11) },
    { does: 'of version 3', header: changed(12, 0x31) },
    { does: 'with another command', header: changed(12, 0x22) },
    { does: 'of another family', header: changed(13, 0x41) },
    { does: 'of another transport', header: changed(13, 0x13) },
    { does: 'shorter than its addresses', header: changed(15, 11) },
    { does: 'longer than 536 bytes', header: binaryHeader({ tlvs: Buffer.alloc(525) }) },
  ])('$does is not believed, and nothing more is waited for', ({ header }) => {
    expect(readProxyHeader(header.subarray(0, 16))).toBe('invalid')
  })
})

test.each([
  'GET / HTTP/1.1',
  'PRI * HTTP/2.0',
  'PROPFIND / HTTP/1.1',
  'SSH-2.0-x',
  '\r\nGET / HTTP/1.1',
  '\x16\x03\x01',
  'proxy ',
])('%j begins no header', (bytes) => expect(text(bytes)).toBe('none'))

const ports = fc.nat(65_535)
const plain = (address: string) => new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=[\d.]+$)/, '')
const sources = fc.oneof(
  fc.tuple(fc.ipV4(), ports).map(([address, port]) => ({ header: lineFor(address, port), source: { address, port } })),
  fc
    .tuple(fc.ipV6(), ports)
    .map(([address, port]) => ({ header: lineFor(address, port), source: { address: plain(address), port } })),
  fc.tuple(fc.ipV4(), ports, fc.uint8Array({ maxLength: 20 })).map(([address, port, tlvs]) => ({
    header: binaryHeader({ addresses: ipv4Of(address, port), tlvs: Buffer.from(tlvs) }),
    source: { address, port },
  })),
)

test('a header is incomplete until its last byte, and the same whatever follows', () => {
  fc.assert(
    fc.property(sources, fc.uint8Array({ maxLength: 40 }), ({ header, source }, rest) => {
      for (let end = 0; end < header.length; end++) expect(readProxyHeader(header.subarray(0, end))).toBe('more')
      expect(readProxyHeader(Buffer.concat([header, rest]))).toEqual({ length: header.length, source })
    }),
    { numRuns: 200 },
  )
})

test('the result is final within 552 bytes', () => {
  const signatures = fc.constantFrom(
    '',
    'PROXY ',
    'PROXY TCP4 1.2.3.4 ',
    '\r\n\r\n\0\r\nQUIT\n',
    '\r\n\r\n\0\r\nQUIT\n!\x11',
    '\r\n\r\n\0\r\nQUIT\n \x21\0',
  )
  fc.assert(
    fc.property(signatures, fc.uint8Array({ minLength: 560, maxLength: 560 }), (first, random) => {
      const bytes = Buffer.concat([Buffer.from(first, 'latin1'), random])
      let decided: ReturnType<typeof readProxyHeader> = 'more'
      for (let end = 0; end <= 552; end++) {
        const said = readProxyHeader(bytes.subarray(0, end))
        if (decided !== 'more') expect(said).toEqual(decided)
        decided = said
      }
      expect(decided).not.toBe('more')
      if (typeof decided === 'object') expect(decided.length).toBeLessThanOrEqual(552)
    }),
    { numRuns: 40 },
  )
})
