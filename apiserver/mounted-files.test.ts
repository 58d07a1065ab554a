import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { generateIssuerKey, publicKeySet } from '../operator/installation/api-secret.ts'
import { type ApiFiles, openMountedFiles } from './mounted-files.ts'

const log = pino({ level: 'silent' })
const HOUR = 3_600_000
const SECRET = 'ab'.repeat(32)

async function mount(path: string, changed: Record<string, string> = {}): Promise<void> {
  const files = {
    'tls.crt': '-----BEGIN CERTIFICATE-----\n',
    'tls.key': '-----BEGIN PRIVATE KEY-----\n',
    issuer: 'https://issuer.test',
    'jwks.json': JSON.stringify(publicKeySet(await generateIssuerKey())),
    'token-secret': SECRET,
    ...changed,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text)
}

const temporary = () => mkdtempDisposable(join(tmpdir(), 'mounted-'))

test('the files are read again when they change', async () => {
  await using dir = await temporary()
  await mount(dir.path)
  using files = await openMountedFiles({ directory: dir.path, log, everyMs: HOUR })
  expect(files.current()).toMatchObject({ issuer: 'https://issuer.test', certificate: '-----BEGIN CERTIFICATE-----\n' })
  expect(Buffer.from(files.current().tokenSecret).toString('hex')).toBe(SECRET)

  const seen: ApiFiles[] = []
  files.onChange((now) => seen.push(now))
  await files.poll()
  expect(seen).toEqual([])
  await writeFile(join(dir.path, 'issuer'), 'https://other.test\n')
  await files.poll()
  expect(seen.map(({ issuer }) => issuer)).toEqual(['https://other.test'])
})

test('broken or missing files are ignored, and the previous ones stay in use', async () => {
  await using dir = await temporary()
  await mount(dir.path)
  using files = await openMountedFiles({ directory: dir.path, log, everyMs: HOUR })
  const before = files.current()
  await writeFile(join(dir.path, 'jwks.json'), '{"keys":')
  await files.poll()
  await rm(join(dir.path, 'tls.key'))
  await files.poll()
  expect(files.current()).toBe(before)
})

test('the administrator’s certificate is read from its own directory', async () => {
  await using dir = await temporary()
  await using own = await temporary()
  await mount(dir.path)
  await mount(own.path, { 'tls.crt': '-----BEGIN CERTIFICATE-----\nown\n' })
  using files = await openMountedFiles({ directory: dir.path, tlsDirectory: own.path, log, everyMs: HOUR })
  expect(files.current().certificate).toContain('own')
})

test.each([
  { when: 'nothing is mounted', changed: undefined, says: 'ENOENT' },
  { when: 'the secret is too short', changed: { 'token-secret': 'abcd' }, says: 'tokenSecret' },
  { when: 'the keys are not JSON', changed: { 'jwks.json': `{${SECRET}` }, says: 'cannot be used' },
])('when $when, the start fails with an error that does not quote the files', async ({ changed, says }) => {
  await using dir = await temporary()
  if (changed) await mount(dir.path, changed)
  const failed: unknown = await openMountedFiles({ directory: dir.path, log }).catch((error: unknown) => error)
  expect(failed).toMatchObject({ code: 'files_unreadable', message: expect.stringContaining(says) as string })
  expect(String(failed)).not.toContain(SECRET)
})
