import { type ExecFileOptions, execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readFile, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { running, writeSsh } from '../support/edge/openssh.ts'
import { freePort } from '../support/free-port.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { scratch } from '../support/postgresql/disks.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const URL_RULE = expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/) as string
const HTTP_URL_RULE = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string
const PORT = expect.any(Number) as number
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/

const cleanup = new AsyncDisposableStack()
let mooring: Mooring
let httpPort: number
beforeAll(async () => {
  // The path has a space and a quote, which shell lines must quote correctly.
  const directory = await mkdtempDisposable(join(await scratch(), `mooring it's-`))
  cleanup.use(directory)
  httpPort = await freePort()
  const args = ['--shared-http-port', String(httpPort)]
  mooring = cleanup.use(await startMooring({ dataDir: join(directory.path, '.mooring'), args }))
})
afterAll(() => cleanup.disposeAsync())

const run = promisify(execFile)
/** Runs shell lines in the directory that contains `.mooring`, as a user would, without variables of Mooring. */
const shell = async (script: string, options: ExecFileOptions = {}): Promise<string> => {
  const { stdout } = await run('sh', ['-eu', '-c', script], { cwd: dirname(mooring.dataDir), ...options })
  return String(stdout)
}
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('the ready file has the URLs, ports and files of the deployment', async () => {
  const text = await readFile(join(mooring.dataDir, 'ready.json'), 'utf8')
  expect(JSON.parse(text)).toEqual({
    ...{ sharedUrl: URL_RULE, dedicatedUrl: URL_RULE },
    ...{ sharedHttpUrl: HTTP_URL_RULE, dedicatedHttpUrl: HTTP_URL_RULE },
    token: expect.stringMatching(JWT) as string,
    ca: join(mooring.dataDir, 'ca.pem'),
    ...{ sshHost: '127.0.0.1', sshPort: PORT, httpPort: PORT, httpsPort: PORT },
    dashboardUrl: expect.stringMatching(/^http:\/\/dashboard\.localhost:\d+\/dashboard#code=[\w-]{32}$/) as string,
    domain: 'tunnel.localhost',
    metricsUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/) as string,
    regionId: 1,
    region: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
  })
})

test('the plain HTTP ports of the ready file answer', async () => {
  for (const url of [mooring.ready.sharedHttpUrl, mooring.ready.dedicatedHttpUrl])
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
})

test('only the owner may read files with secrets', async () => {
  expect(await modeOf(mooring.dataDir)).toBe('700')
  for (const name of ['token', 'env', 'ready.json', 'issuer.json', 'state.db']) {
    expect([name, await modeOf(join(mooring.dataDir, name))]).toEqual([name, '600'])
  }
})

test('the env file sets four variables that curl works with', async () => {
  const said = await shell(
    '. .mooring/env; printf "%s\\n" "$MOORING_URL" "$MOORING_DEDICATED_URL" "$MOORING_CA" "$MOORING_TOKEN"',
  )
  const [shared, dedicated, ca, token = ''] = said.split('\n')
  expect([shared, dedicated, ca]).toEqual([mooring.ready.sharedUrl, mooring.ready.dedicatedUrl, mooring.ready.ca])
  expect(token).toBe((await readFile(join(mooring.dataDir, 'token'), 'utf8')).trim())
  const me = await shell(
    '. .mooring/env; curl -sS --cacert "$MOORING_CA" -H "Authorization: Bearer $MOORING_TOKEN" "$MOORING_DEDICATED_URL/v1/me"',
  )
  expect(JSON.parse(me)).toMatchObject({
    msg: 'OK',
    data: { user: 'local:admin', namespaces: [{ organization: 'default', namespace: 'default' }] },
  })
})

test('the token is valid for 12 hours, with home namespace default/default', async () => {
  const [, payload = ''] = mooring.ready.token.split('.')
  const {
    exp,
    iat,
    mooring_namespace: home,
  } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  expect(Number(exp) - Number(iat)).toBe(12 * 3_600)
  expect(home).toBe('default/default')
})

test('the unchanged lines of the welcome text connect to a database', async () => {
  const said = mooring.output()
  expect(said).toContain(mooring.ready.token)
  const [, lines = ''] = /Your first database[^\n]*\n\n((?: {2}[^\n]+\n){3})/.exec(said) ?? []
  expect(await shell(lines)).toContain('PostgreSQL 15.4')
})

/** Returns the commands of a section of the README. */
async function blocksOf(section: string): Promise<readonly string[]> {
  const readme = await readFile(join(REPOSITORY, 'README.md'), 'utf8')
  const text = readme.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? ''
  const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  expect(blocks.length).toBeGreaterThan(0)
  return blocks
}

test('the unchanged commands of the README connect to a database', async () => {
  const blocks = await blocksOf('A database in CI')
  const output = await shell(blocks.join('\n'))
  expect(output).toContain('PostgreSQL 15.4')
  expect(output).toMatch(/"uri": "postgresql:/)
})

test('the unchanged commands of the README connect to a dedicated database', async () => {
  const [first = ''] = await blocksOf('A database in CI')
  const [dedicated = ''] = await blocksOf('A database of its own')
  const output = await shell(`${first}\n${dedicated}`)
  expect(output).toContain('PostgreSQL 15.4')
  expect(output).toContain('"plan":"medium"')
})

test.each([
  { file: 'README.md', answer: { data: { database: { status: 'failed', statusReason: 'no disk' } } }, says: 'no disk' },
  { file: 'docs/api.md', answer: { data: { database: { status: 'failed', statusReason: 'no disk' } } }, says: 'no disk' },
  { file: 'docs/dedicated.md', answer: { msg: 'no database', error: {} }, says: 'no database' },
])('the loop of $file that waits for a database ends with a message when it has failed', async ({ file, answer, says }) => {
  const [loop = ''] = /^until .*\$databases\/\$id[^]*?; done$/m.exec(await readFile(join(REPOSITORY, file), 'utf8')) ?? []
  const script = `databases=x; id=y; api() { printf %s '${JSON.stringify(answer)}'; }\n${loop}`
  const { stderr } = await run('sh', ['-eu', '-c', script])
  expect(stderr).toContain(says)
})

test('the unchanged tunnel commands of the README, in two terminals, publish a local port to a visitor', async () => {
  const [connect = '', visit = ''] = await blocksOf('A tunnel from my laptop')
  await using home = await mkdtempDisposable(join(tmpdir(), 'mooring-home-'))
  const [directory, port] = [dirname(mooring.dataDir), await freePort()]
  await mkdir(join(home.path, '.ssh'), { mode: 0o700 })
  // ssh finds the user's home directory by user id, not by HOME.
  const options = [`IdentityFile=${home.path}/.ssh/id_ed25519`, 'StrictHostKeyChecking=yes']
  await writeSsh(home.path, { options, localPort: port })
  await symlink(join(REPOSITORY, 'docs'), join(directory, 'docs'))
  const lines = `cd "$0"\n${connect.replace('http.server 3000', `http.server ${port}`)}`
  const path = `${home.path}:${process.env.PATH ?? ''}`
  await using terminal = running(['sh', '-eu', '-c', lines, directory], { HOME: home.path, PATH: path })
  await vi.waitFor(async () => expect(await shell(visit), terminal.said()).toContain('install.md'), {
    timeout: 60_000,
    interval: 100,
  })
})

test('npm run token prints only a token, for a namespace and a role', async () => {
  const env = { ...process.env, MOORING_DATA_DIR: mooring.dataDir }
  const token = await shell('npm run token -- --namespace default/default --role editor --ttl 1h', { cwd: REPOSITORY, env })
  expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  const { status, body } = await mooring.call('GET', '/v1/me', { token: token.trim() })
  expect(status).toBe(200)
  expect(body.data.namespaces).toEqual([{ organization: 'default', namespace: 'default', role: 'editor' }])
})

test.each([
  {
    what: 'does not exist gives a token and a warning',
    namespace: 'default/nope',
    says: 'the namespace default/nope does not exist',
  },
  { what: 'exists gives no warning', namespace: 'default/default', says: '' },
])('npm run token for a namespace that $what', async ({ namespace, says }) => {
  const env = { ...process.env, MOORING_DATA_DIR: mooring.dataDir }
  const { stdout, stderr } = await run('npm', ['run', 'token', '--', '--namespace', namespace], { cwd: REPOSITORY, env })
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  if (says === '') expect(stderr).toBe('')
  else expect(stderr).toContain(`mooring: warning: ${says}`)
})

test('plain HTTP on loopback accepts the same tokens', async () => {
  const answer = await fetch(`http://127.0.0.1:${httpPort}/v1/me`, {
    headers: { Authorization: `Bearer ${mooring.ready.token}` },
  })
  expect(answer.status).toBe(200)
})

test('npm start -- --help lists every setting with its variable', async () => {
  const said = await shell('npm start -- --help', { cwd: REPOSITORY })
  const flags = [
    ...[
      'data-dir',
      'listen',
      'public-host',
      'shared-port',
      'dedicated-port',
      'shared-http-port',
      'dedicated-http-port',
      'ssh-port',
      'http-port',
    ],
    ...['https-port', 'metrics-port', 'domain', 'compatible-motors', 'log-level', 'log-format', 'ready-file'],
  ]
  for (const flag of flags) {
    expect(said).toContain(`--${flag} `)
    expect(said).toContain(`MOORING_${flag.toUpperCase().replaceAll('-', '_')}`)
  }
})
