import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { createIssuer } from '../../apiserver/auth/issuer.ts'
import { Ttl } from '../../apiserver/auth/token-request.ts'
import { generateIssuerKey } from '../../operator/installation/api-secret.ts'
import { dataDirAt, writeIssuer } from '../../embedded/data-dir.ts'
import { parseTokenRequest } from '../../embedded/token-request.ts'

const run = promisify(execFile)
const cli = join(import.meta.dirname, '../../embedded/token-cli.ts')
const temporary = () => mkdtempDisposable(join(tmpdir(), 'token-'))

test('stdout has the token alone, with the requested claims', async () => {
  await using dir = await temporary()
  const stored = { issuer: 'https://127.0.0.1:8443', privateKey: await generateIssuerKey() }
  await writeIssuer(dataDirAt(dir.path), stored)
  const { stdout, stderr } = await run(process.execPath, [cli, '--namespace', 'acme/prod', '--role', 'viewer', '--ttl', '15m'], {
    env: { ...process.env, MOORING_DATA_DIR: dir.path },
  })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)

  const { jwks } = await createIssuer(stored)
  const { payload } = await jwtVerify(stdout.trim(), createLocalJWKSet(jwks), { issuer: stored.issuer, audience: 'mooring' })
  expect(payload).toMatchObject({ sub: 'viewer@acme/prod', mooring_namespace: 'acme/prod', mooring_role: 'viewer' })
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(900)
})

test.each([
  { does: 'a wrong flag', argv: ['--role', 'king'], says: '--role must be one of viewer, editor, admin, platform-admin.' },
  { does: 'a directory without state', argv: ['--role', 'platform-admin'], says: 'run npm start once' },
  { does: 'a broken issuer file', argv: ['--role', 'platform-admin'], broken: true, says: 'is not a valid issuer key' },
])('$does prints a message, exits with 2 and leaves stdout empty', async ({ argv, broken, says }) => {
  await using dir = await temporary()
  if (broken) await writeFile(dataDirAt(dir.path).issuer, '{}')
  const failed: unknown = await run(process.execPath, [cli, ...argv, '--data-dir', dir.path]).catch((error: unknown) => error)
  expect(failed).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) as string })
  expect((failed as { stderr: string }).stderr).toMatch(/^mooring: [^\n]+\.\n$/)
})

test.each([
  { argv: ['--namespace', 'a/b'], gives: { subject: 'editor@a/b', namespace: 'a/b', role: 'editor', ttlSeconds: 3_600 } },
  { argv: ['--role', 'platform-admin'], gives: { subject: 'platform-admin', role: 'platform-admin', ttlSeconds: 3_600 } },
  { argv: ['--role', 'platform-admin', '--namespace', 'a/b'], gives: { subject: 'platform-admin@a/b', namespace: 'a/b' } },
  { argv: ['--namespace', 'a/b', '--subject', 'ci', '--ttl', '30d'], gives: { subject: 'ci', ttlSeconds: 2_592_000 } },
])('$argv requests $gives', ({ argv, gives }) => {
  expect(parseTokenRequest(argv, {})).toMatchObject({ ok: { dataDir: '.mooring', claims: gives } })
})

test.each([
  { argv: [], says: '--namespace is missing: the role editor needs a namespace' },
  { argv: ['--namespace', 'acme'], says: '--namespace must be an organization and a namespace' },
  { argv: ['--namespace', 'acme--x/b'], says: '--namespace must be an organization and a namespace' },
  { argv: ['--namespace', `${'a'.repeat(31)}/b`], says: '--namespace must be an organization and a namespace' },
  { argv: ['--namespace', 'a/b', '--ttl', '31d'], says: '--ttl must be a number with s, m, h or d' },
  { argv: ['--namespace', 'a/b', '--ttl', '0s'], says: '--ttl must be' },
  { argv: ['--namespace', 'a/b', '--ttl', '1h30m'], says: '--ttl must be' },
  { argv: ['--namespace', 'a/b', '--subject', 'system:masters'], says: '--subject must be' },
  { argv: ['--nmespace', 'a/b'], says: "unknown option '--nmespace'" },
])('$argv is rejected with one sentence', ({ argv, says }) => {
  const parsed = parseTokenRequest(argv, {})
  expect(parsed).toMatchObject({ exit: 2, text: expect.stringMatching(/^mooring: [^\n]+\.$/) as string })
  expect('text' in parsed && parsed.text).toContain(says)
})

test.each([
  { text: '90s', seconds: 90 },
  { text: '15m', seconds: 900 },
  { text: '1h', seconds: 3_600 },
  { text: '7d', seconds: 604_800 },
])('$text is $seconds seconds', ({ text, seconds }) => expect(Ttl.parse(text)).toBe(seconds))
