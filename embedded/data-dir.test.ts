import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtempDisposable, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect, promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { generateIssuerKey } from '../operator/installation/api-secret.ts'
import { writeFileAtomic } from './files.ts'
import { shellExports, writeClientFiles, createReadyFile, type Ready } from './publish.ts'
import { dataDirAt, openDataDir, readIssuer, writeIssuer } from './data-dir.ts'

const run = promisify(execFile)
const temporary = () => mkdtempDisposable(join(tmpdir(), 'data-dir-'))
const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8)

test('a new data directory has mode 0700, and its parents are created too', async () => {
  await using parent = await temporary()
  const dir = await openDataDir(join(parent.path, 'a', 'b'))
  expect(dir.path).toBe(join(parent.path, 'a', 'b'))
  expect(await modeOf(dir.path)).toBe('700')
})

test.each([
  { does: 'an empty one that all may write is tightened', mode: 0o777, content: false, refused: undefined },
  { does: 'one that others may read is tightened', mode: 0o755, content: true, refused: undefined },
  {
    does: 'one with content that others may write is refused',
    mode: 0o770,
    content: true,
    refused: 'can be written by other users',
  },
])('$does', async ({ mode, content, refused }) => {
  await using parent = await temporary()
  const path = join(parent.path, 'data')
  await mkdir(path)
  if (content) await writeFile(join(path, 'file'), '')
  await chmod(path, mode)
  const opened = openDataDir(path)
  if (refused === undefined) await opened
  else
    await expect(opened).rejects.toMatchObject({ code: 'data_dir_unusable', message: expect.stringContaining(refused) as string })
  expect(await modeOf(path)).toBe(refused === undefined ? '700' : mode.toString(8))
})

test('a file, a link, a path below a file and an unwritable path are rejected with a message', async () => {
  await using parent = await temporary()
  const file = join(parent.path, 'file')
  const link = join(parent.path, 'link')
  await writeFile(file, '')
  await symlink(parent.path, link)
  for (const path of [file, link, join(file, 'below'), '/proc/nope/data']) {
    await expect(openDataDir(path)).rejects.toMatchObject({
      code: 'data_dir_unusable',
      message: expect.stringContaining(`the data directory ${path} `) as string,
    })
  }
})

test('the client files have their modes, and a shell that sources env has the variables', async () => {
  await using parent = await temporary()
  const dir = await openDataDir(join(parent.path, `it's a "$HOME" \`dir\``))
  await writeClientFiles(dir, { sharedUrl: 'https://a:1', dedicatedUrl: 'https://a:2', token: 'a.b.c', ca: 'PEM\n' })
  expect(await readFile(dir.ca, 'utf8')).toBe('PEM\n')
  expect(await readFile(dir.token, 'utf8')).toBe('a.b.c\n')
  expect(await Promise.all([dir.ca, dir.token, dir.env].map(modeOf))).toEqual(['644', '600', '600'])
  expect((await readdir(dir.path)).sort()).toEqual(['ca.pem', 'env', 'token'])

  const script = '. "$0"; env | grep ^MOORING_ | sort'
  const { stdout } = await run('sh', ['-c', script, dir.env], { env: { PATH: process.env.PATH } })
  expect(stdout.split('\n')).toEqual([
    `MOORING_CA=${dir.ca}`,
    'MOORING_DEDICATED_URL=https://a:2',
    'MOORING_TOKEN=a.b.c',
    'MOORING_URL=https://a:1',
    '',
  ])
})

test('a shell reads back any quoted value', async () => {
  const value = fc.string({ unit: fc.constantFrom("'", '"', '\\', '$', '`', '!', ' ', '\n', 'a', 'é', '*', '~'), maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(value, async (text) => {
      const { stdout } = await run('sh', ['-c', `${shellExports({ X: text })}printf %s. "$X"`])
      return stdout === `${text}.`
    }),
    { numRuns: 40 },
  )
})

test('a file that cannot be renamed leaves no temporary file', async () => {
  await using parent = await temporary()
  const taken = join(parent.path, 'taken')
  await mkdir(join(taken, 'full'), { recursive: true })
  await expect(writeFileAtomic(taken, 'x', 0o600)).rejects.toThrow()
  expect(await readdir(parent.path)).toEqual(['taken'])
})

const READY: Ready = {
  sharedUrl: 'https://127.0.0.1:1',
  dedicatedUrl: 'https://127.0.0.1:2',
  sharedHttpUrl: null,
  dedicatedHttpUrl: null,
  token: 'a.b.c',
  ca: '/data/ca.pem',
  sshHost: null,
  sshPort: null,
  httpPort: null,
  httpsPort: null,
  domain: 'tunnel.localhost',
  metricsUrl: 'http://127.0.0.1:3/metrics',
  dashboardUrl: 'https://127.0.0.1:1/dashboard#code=1',
  regionId: 1,
  region: '0195d3c0-0000-7000-8000-000000000001',
}

test('the ready file of an earlier run is removed at once, and the new one exists from ready to stop', async () => {
  await using parent = await temporary()
  const path = join(parent.path, 'run', 'ready.json')
  await mkdir(join(parent.path, 'run'))
  await writeFile(path, 'old')
  const ready = await createReadyFile(path)
  expect(await readdir(join(parent.path, 'run'))).toEqual([])
  await ready.write(READY)
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(READY)
  expect(await modeOf(path)).toBe('600')
  await ready.remove()
  expect(await readdir(join(parent.path, 'run'))).toEqual([])
})

test('without a path no ready file is written', async () => {
  const ready = await createReadyFile(undefined)
  await ready.write(READY)
  await ready.remove()
})

test('the issuer file is private, is read back unchanged, and its key never appears in an error', async () => {
  await using parent = await temporary()
  const dir = dataDirAt(parent.path)
  expect(await readIssuer(dir)).toBeUndefined()
  const content = { issuer: 'https://127.0.0.1:8443', privateKey: await generateIssuerKey() }
  await writeIssuer(dir, content)
  expect(await readIssuer(dir)).toEqual(content)
  expect(await modeOf(dir.issuer)).toBe('600')

  await writeFile(dir.issuer, '{"privateKey": "secret')
  const error: unknown = await readIssuer(dir).catch((error: unknown) => error)
  expect(error).toMatchObject({ code: 'issuer_unreadable' })
  expect(inspect(error)).not.toContain('secret')
})
