import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isWholeKey } from './ssh-public-key.ts'

const string = (bytes: Buffer | string): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, Buffer.from(bytes)])
}
const line = (type: string, ...strings: readonly (Buffer | string)[]): string =>
  `${type} ${Buffer.concat([type, ...strings].map(string)).toString('base64')} a comment`

const rsa = (bits: number): string => {
  const { n = '', e = '' } = generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' })
  return line('ssh-rsa', Buffer.from(e, 'base64url'), Buffer.concat([Buffer.of(0), Buffer.from(n, 'base64url')]))
}
const ed25519 = line('ssh-ed25519', Buffer.alloc(32, 7))
const point = (bytes: number) => Buffer.alloc(bytes, 4)

test.each<[string, string, boolean]>([
  ['an Ed25519 key', ed25519, true],
  ['a P-256 key', line('ecdsa-sha2-nistp256', 'nistp256', point(65)), true],
  ['a P-384 key', line('ecdsa-sha2-nistp384', 'nistp384', point(97)), true],
  ['a P-521 key', line('ecdsa-sha2-nistp521', 'nistp521', point(133)), true],
  ['a hardware Ed25519 key', line('sk-ssh-ed25519@openssh.com', point(32), 'ssh:'), true],
  ['a hardware P-256 key', line('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', point(65), 'ssh:'), true],
  ['RSA of 2048 bits', rsa(2048), true],
  ['RSA of 2047 bits', rsa(2047), false],
  ['RSA of 1024 bits', rsa(1024), false],
  ['a key under another type’s name', ed25519.replace('ssh-ed25519', 'ssh-rsa'), false],
  ['a point of another curve', line('ecdsa-sha2-nistp256', 'nistp384', point(97)), false],
  ['DSA', line('ssh-dss', point(128)), false],
  ['more after the key', line('ssh-ed25519', Buffer.alloc(32, 7), 'x'), false],
  ['nothing', '', false],
])('%s: %s → %s', (_, key, whole) => {
  expect(isWholeKey(key)).toBe(whole)
})

test('isWholeKey rejects a truncated key, and throws for no text', () => {
  const [type = '', base64 = ''] = ed25519.split(' ')
  fc.assert(fc.property(fc.integer({ min: 0, max: base64.length - 1 }), (at) => !isWholeKey(`${type} ${base64.slice(0, at)}`)))
  fc.assert(fc.property(fc.string(), fc.base64String(), (name, blob) => !isWholeKey(`${name} ${blob}`)))
})
