import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { generateKeyPairSync } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { openSshPrivateKey, publicLine } from './openssh.ts'

const run = promisify(execFile)

test.each([
  { type: 'ed25519', key: generateKeyPairSync('ed25519').privateKey },
  { type: 'ecdsa', key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey },
  { type: 'rsa', key: generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey },
])('ssh-keygen reads the public key of $type out of what is kept of it', async ({ key }) => {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-keys-'))
  try {
    const file = join(dir, 'key')
    await writeFile(file, openSshPrivateKey(key), { mode: 0o600 })
    const { stdout } = await run('ssh-keygen', ['-y', '-f', file])
    expect(stdout.trim()).toBe(publicLine(key))
  } finally {
    await rm(dir, { recursive: true })
  }
})
