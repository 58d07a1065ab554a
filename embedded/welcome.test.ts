import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { writeClientFiles } from './publish.ts'
import { dataDirAt, openDataDir } from './data-dir.ts'
import { createCa, issueCertificate } from '../operator/certificates/local-ca.ts'
import { welcome } from './welcome.ts'

const run = promisify(execFile)
const REGION = '0195d3c0-0000-7000-8000-000000000001'
const EDGE = { domain: 'tunnel.localhost', sshHost: '127.0.0.1', ports: { ssh: 22_222, http: 28_080, https: 28_443 } }
const dashboardUrl = 'https://a:1/dashboard#code=1'
const URI = 'postgresql://first0:pa%24s@127.0.0.1:5432/first0?sslmode=verify-full'

const linesToTry = (message: string): string[] =>
  message
    .split('\n')
    .filter((line) => /^ {2}(\. |uri=|psql )/.test(line))
    .map((line) => line.trim())

test.each([
  { answer: { msg: 'OK', data: { instance: { uri: URI } } }, connects: URI },
  { answer: { msg: 'unknown region: x', error: { code: 'unknown_region' } }, connects: 'unknown region: x' },
])('the three lines, pasted into a shell, ask for a database and connect to $connects', async ({ answer, connects }) => {
  await using parent = await mkdtempDisposable(join(tmpdir(), 'welcome-'))
  const dataDir = await openDataDir(join(parent.path, "it's here"))
  const ca = await createCa(new Date())
  const { certificate, key } = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
  const asked: unknown[] = []
  await using api = createServer({ cert: certificate, key }, (req, res) => {
    void text(req).then((body) => {
      asked.push({
        url: req.url,
        method: req.method,
        authorization: req.headers.authorization,
        body: JSON.parse(body) as unknown,
      })
      res.end(JSON.stringify(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(api, 'listening')
  const sharedUrl = `https://127.0.0.1:${(api.address() as AddressInfo).port}`
  await writeClientFiles(dataDir, { sharedUrl, dedicatedUrl: sharedUrl, token: 'a.b.c', ca: ca.certificate })
  await writeFile(join(parent.path, 'psql'), '#!/bin/sh\necho "connects to $1"\n', { mode: 0o755 })

  const lines = linesToTry(
    welcome({
      sharedUrl,
      dedicatedUrl: sharedUrl,
      ...{ publicUrls: [], httpUrls: [] },
      dataDir,
      ...{ token: 'a.b.c', dashboardUrl },
      region: REGION,
      edge: EDGE,
      motor: 'postgresql-15.4.0',
    }),
  )
  expect(lines).toHaveLength(3)
  const PATH = [parent.path, dirname(process.execPath), process.env.PATH].join(':')
  const { stdout } = await run('sh', ['-c', lines.join('\n')], { env: { PATH, NO_PROXY: '*' } })
  expect(stdout).toBe(`${connects}\nconnects to ${connects}\n`)
  expect(asked).toEqual([
    {
      url: '/v1/instances/by-identifier/first',
      method: 'PUT',
      authorization: 'Bearer a.b.c',
      body: { region: REGION, motor: 'postgresql-15.4.0', ttl: 604_800 },
    },
  ])
  api.closeAllConnections()
})

test('the message has the URLs, and no example when the region serves no motor', () => {
  const facts = {
    sharedUrl: 'https://a:1',
    dedicatedUrl: 'https://a:2',
    ...{ publicUrls: [], httpUrls: ['http://127.0.0.1:3'] },
    dataDir: dataDirAt('/data'),
    ...{ token: 'a.b.c', dashboardUrl },
    region: REGION,
    edge: EDGE,
  }
  const message = welcome({ ...facts, motor: undefined })
  for (const said of [
    dashboardUrl,
    'https://a:1',
    'https://a:2',
    'http://127.0.0.1:3',
    'a.b.c',
    '/data/token',
    '127.0.0.1:22222',
    'Ctrl-C',
  ])
    expect(message).toContain(said)
  expect(linesToTry(message)).toEqual([])
  expect(message).not.toContain('elsewhere')
})

test.each([
  ['tunnel.localhost', true],
  ['t.example.org', false],
])('with a public host the message has its URLs; the domain %s is for this machine alone: %s', (domain, isLocal) => {
  const message = welcome({
    ...{ sharedUrl: 'https://127.0.0.1:1', dedicatedUrl: 'https://127.0.0.1:2', httpUrls: [], motor: undefined },
    ...{ publicUrls: ['https://my.example.org:1'], dataDir: dataDirAt('/data'), token: 'a.b.c', dashboardUrl, region: REGION },
    edge: { ...EDGE, sshHost: 'my.example.org', domain },
  })
  expect(message).toContain('from elsewhere https://my.example.org:1   (CA: /data/ca.pem)')
  expect(message).toContain('ssh to my.example.org:22222')
  expect(message.includes(`${domain} is for this machine alone`)).toBe(isLocal)
})
