import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { generateKeyPairSync } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openSshPrivateKey, publicLine, publicLineIn } from './openssh.ts'

const run = promisify(execFile)

test.each([
  { type: 'ed25519', key: generateKeyPairSync('ed25519').privateKey },
  { type: 'ecdsa', key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey },
  { type: 'rsa', key: generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey },
])('ssh-keygen derives the public key of $type from the stored file', async ({ key }) => {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-keys-'))
  try {
    const file = join(dir, 'key')
    await writeFile(file, openSshPrivateKey(key), { mode: 0o600 })
    const { stdout } = await run('ssh-keygen', ['-y', '-f', file])
    expect(stdout.trim()).toBe(publicLine(key))
    expect(publicLineIn(openSshPrivateKey(key))).toBe(publicLine(key))
  } finally {
    await rm(dir, { recursive: true })
  }
})

test.each(['ed25519', 'ecdsa', 'rsa'])(
  'publicLineIn reads the public half of an %s key that ssh-keygen has made, and none of an encrypted key',
  async (type) => {
    const dir = await mkdtemp(join(tmpdir(), 'mooring-keys-'))
    try {
      const file = join(dir, 'key')
      await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', 'made by hand', '-f', file])
      const [kind, blob] = (await readFile(`${file}.pub`, 'utf8')).split(' ')
      expect(publicLineIn(await readFile(file, 'utf8'))).toBe(`${kind} ${blob}`)
      await run('ssh-keygen', ['-q', '-p', '-N', 'a passphrase', '-f', file])
      expect(publicLineIn(await readFile(file, 'utf8'))).toBeUndefined()
    } finally {
      await rm(dir, { recursive: true })
    }
  },
)

/** File with changed bytes. */
function changed(file: string, change: (bytes: Buffer) => Buffer): string {
  const [head = '', ...lines] = file.trimEnd().split('\n')
  return [head, change(Buffer.from(lines.slice(0, -1).join(''), 'base64')).toString('base64'), lines.at(-1), ''].join('\n')
}

test('publicLineIn returns undefined for a damaged key', () => {
  const file = openSshPrivateKey(generateKeyPairSync('ed25519').privateKey)
  const { length } = Buffer.from(file.split('\n').slice(1, -2).join(''), 'base64')
  expect(publicLineIn(changed(file, (bytes) => bytes))).toBeDefined()
  for (let at = 0; at < length; at += 1) expect(publicLineIn(changed(file, (bytes) => bytes.subarray(0, at)))).toBeUndefined()
  for (const text of ['', 'no key', 'LS0t', file.slice(1), publicLine(generateKeyPairSync('ed25519').privateKey)])
    expect(publicLineIn(text)).toBeUndefined()
})

test('publicLineIn throws for no file', () => {
  const file = openSshPrivateKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
  const flips = fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(flips, (changes) => {
      const read = publicLineIn(
        changed(file, (bytes) => {
          for (const [at, value] of changes) bytes[at % bytes.length] = value
          return bytes
        }),
      )
      expect(read === undefined || read.startsWith('ecdsa-sha2-nistp256 ')).toBe(true)
    }),
  )
})
