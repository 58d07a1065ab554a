import { generateKeyPairSync } from 'node:crypto'
import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test, describe } from 'vitest'
import { isWholeKey, knownHostsFile, knownHostsLines } from './ssh-public-key.ts'

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

const ED25519 = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`
const RSA = 'ssh-rsa AAAA'

describe('OpenSSH finds host keys', () => {
  test.each([
    { does: 'at port 22 under the bare host', host: 'edge.example', port: 22, lines: [`edge.example ${ED25519}`] },
    {
      does: 'at another port under host and port',
      host: 'edge.example',
      port: 22_222,
      lines: [`[edge.example]:22222 ${ED25519}`],
    },
    { does: 'of an IPv6 address at port 22 without brackets', host: '2001:db8::1', port: 22, lines: [`2001:db8::1 ${ED25519}`] },
    { does: 'of an IPv6 address at another port', host: '2001:db8::1', port: 2222, lines: [`[2001:db8::1]:2222 ${ED25519}`] },
  ])('$does', async ({ host, port, lines }) => {
    expect(knownHostsLines([ED25519], host, port)).toEqual(lines)
    await using directory = await mkdtempDisposable(join(tmpdir(), 'known-hosts-'))
    const file = join(directory.path, 'known_hosts')
    await writeFile(file, knownHostsFile([ED25519], host, port))
    // ssh-keygen -F finds keys like ssh.
    const asked = port === 22 ? host : `[${host}]:${port}`
    expect((await promisify(execFile)('ssh-keygen', ['-F', asked, '-f', file])).stdout).toContain(ED25519)
  })

  test('knownHostsFile ends each line with a line break', () => {
    expect(knownHostsLines([ED25519, RSA], 'edge', 22)).toEqual([`edge ${ED25519}`, `edge ${RSA}`])
    expect(knownHostsFile([ED25519, RSA], 'edge', 22)).toBe(`edge ${ED25519}\nedge ${RSA}\n`)
    expect(knownHostsFile([], 'edge', 22)).toBe('')
  })
})
