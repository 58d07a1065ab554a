import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { generateHostKeys, parseHostKey } from './host-keys.ts'
import { parsePublicKey, parsePublicKeyLine } from './public-key.ts'
import { mpint, string, WireReader } from './wire-format.ts'

const data = Buffer.from('what is signed')
const raw = (key: KeyObject, name: 'x' | 'y' | 'n' | 'e') => Buffer.from(String(key.export({ format: 'jwk' })[name]), 'base64url')
const lineOf = (type: string, ...fields: Buffer[]) => `${type} ${Buffer.concat([string(type), ...fields]).toString('base64')}`

describe('a host key', () => {
  const files = generateHostKeys()

  test.each(files.map((file) => ({ file, key: parseHostKey(file) })))(
    'of type $key.type proves itself by its public line',
    ({ key }) => {
      const parsed = parsePublicKeyLine(`${key.publicLine} a comment`)
      expect(parsed?.type).toBe(key.type)
      expect(parsed?.verify(data, key.sign(data, 'sha256'), 'sha256')).toBe(true)
      expect(parsed?.verify(Buffer.from('other'), key.sign(data, 'sha256'), 'sha256')).toBe(false)
    },
  )

  test.each(['', 'ssh-ed25519 AAAA', '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n'])(
    'that is none is refused: %j',
    (file) => {
      expect(() => parseHostKey(file)).toThrow(expect.objectContaining({ code: 'invalid_host_key' }))
    },
  )

  test('truncated at any byte is rejected', () => {
    const [file = ''] = files
    fc.assert(
      fc.property(fc.nat({ max: file.length - 40 }), (end) => {
        expect(() => parseHostKey(file.slice(0, end))).toThrow()
      }),
      { numRuns: 30 },
    )
  })
})

describe('a public key', () => {
  const rsa = (bits: number) => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
    return { line: lineOf('ssh-rsa', mpint(raw(publicKey, 'e')), mpint(raw(publicKey, 'n'))), privateKey }
  }

  test('of RSA is accepted from 2048 bits on, with SHA-2 only', () => {
    const { line, privateKey } = rsa(2048)
    const key = parsePublicKeyLine(line)
    expect(key?.verify(data, sign('sha512', data, privateKey), 'sha512')).toBe(true)
    expect(key?.verify(data, sign('sha1', data, privateKey), undefined)).toBe(false)
    expect(parsePublicKeyLine(rsa(1024).line)).toBeUndefined()
  })

  test('of a hardware token requires the user’s presence', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const application = Buffer.from('ssh:')
    const key = parsePublicKeyLine(lineOf('sk-ssh-ed25519@openssh.com', string(raw(publicKey, 'x')), string(application)))
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
    const signature = (flags: number) => {
      const trailer = Buffer.of(flags, 0, 0, 0, 7)
      return Buffer.concat([sign(null, Buffer.concat([sha256(application), trailer, sha256(data)]), privateKey), trailer])
    }
    expect(key?.verify(data, signature(1), undefined)).toBe(true)
    expect(key?.verify(data, signature(0), undefined)).toBe(false)
    expect(key?.verify(data, signature(1).subarray(1), undefined)).toBe(false)
  })

  test('of a hardware token may be ECDSA', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const point = Buffer.concat([Buffer.of(4), raw(publicKey, 'x'), raw(publicKey, 'y')])
    const application = string('ssh:')
    const key = parsePublicKeyLine(lineOf('sk-ecdsa-sha2-nistp256@openssh.com', string('nistp256'), string(point), application))
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
    const trailer = Buffer.of(1, 0, 0, 0, 7)
    const signed = Buffer.concat([sha256(Buffer.from('ssh:')), trailer, sha256(data)])
    const pair = sign('sha256', signed, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    const signature = Buffer.concat([mpint(pair.subarray(0, 32)), mpint(pair.subarray(32)), trailer])
    expect(key?.verify(data, signature, undefined)).toBe(true)
    expect(key?.verify(Buffer.from('other'), signature, undefined)).toBe(false)
  })

  test.each([
    ['of DSA', lineOf('ssh-dss', mpint(Buffer.of(5)))],
    ['of a type that it is not', `ecdsa-sha2-nistp256 ${lineOf('ssh-ed25519', string(Buffer.alloc(32, 7))).split(' ')[1] ?? ''}`],
    ['with bytes too many', lineOf('ssh-ed25519', string(Buffer.alloc(32, 7)), Buffer.of(0))],
    [
      'off its curve',
      lineOf('ecdsa-sha2-nistp256', string('nistp256'), string(Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]))),
    ],
    ['with options before it', `command="x" ${lineOf('ssh-ed25519', string(Buffer.alloc(32, 7)))}`],
  ])('%s is none', (_, line) => {
    expect(parsePublicKeyLine(line)).toBeUndefined()
  })

  test('parsed from random bytes is a key or undefined, and never throws', () => {
    const type = fc.constantFrom('ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'sk-ssh-ed25519@openssh.com')
    fc.assert(
      fc.property(type, fc.uint8Array({ maxLength: 120 }), (name, bytes) => {
        parsePublicKey(Buffer.concat([string(name), bytes]))
        parsePublicKeyLine(`${name} ${Buffer.from(bytes).toString('base64')}`)
      }),
    )
  })
})

describe('wire format', () => {
  test('numbers are read as they were written', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const trimmed = Buffer.from(
          bytes.subarray(bytes.findIndex((byte) => byte !== 0) === -1 ? bytes.length : bytes.findIndex((b) => b !== 0)),
        )
        expect(new WireReader(mpint(Buffer.from(bytes))).unsigned()).toEqual(trimmed)
      }),
    )
  })

  test('a truncated value is undefined, and so are all that follow', () => {
    const reader = new WireReader(Buffer.of(0, 0, 0, 9, 1, 2, 3, 4, 5))
    expect([reader.string(), reader.uint32(), reader.left]).toEqual([undefined, undefined, 0])
  })
})
