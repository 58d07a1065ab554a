import { execFile } from 'node:child_process'
import { access, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Data } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { patient } from '../support/patience.ts'

/** Checks of the OpenAPI document and of its API by openapi-spec-validator and Schemathesis. */

const PYTHON = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests/python')
const BIN = join(PYTHON, 'bin')
const NAMESPACE = '/v1/organizations/default/namespaces/default'
/** Check to exclude: the API rejects some schema-valid requests, such as those with an unknown region or cursor. */
const NOT_A_RULE = 'positive_data_acceptance'
const SECONDS = 60
/** Settings without rate limits, which other tests cover. */
const UNLIMITED = ['read-rate', 'read-burst', 'write-rate', 'write-burst', 'failed-auth-per-minute'].flatMap((name) => [
  `--${name}`,
  '1000000',
])

let mooring: Mooring
beforeAll(async () => {
  await access(join(BIN, 'schemathesis')).catch(() =>
    expect.fail(`${BIN} is not there: python3 -m venv ${PYTHON} && ${BIN}/pip install -r test/faults/requirements.txt`),
  )
  mooring = await startMooring({ args: UNLIMITED })
})
afterAll(() => mooring[Symbol.asyncDispose]())

const run = promisify(execFile)

/** Runs a program. Returns its stdout, and whether its exit code reports findings. */
function outcomeOf(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<{ readonly failed: boolean; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(join(BIN, program), args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, output) =>
      resolve({ failed: error !== null, output }),
    )
  })
}

test.each(['shared', 'dedicated'] as const)(
  'openapi-spec-validator accepts the document of the %s listener',
  async (listener) => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'openapi-'))
    const file = join(directory.path, 'openapi.json')
    const document = await mooring.call('GET', new URL('/openapi.json', mooring.ready[`${listener}Url`]).href)
    await writeFile(file, JSON.stringify(document.body))
    await run(join(BIN, 'openapi-spec-validator'), [file])
  },
)

test('openapi-spec-validator accepts the document of the repository', async () => {
  await run(join(BIN, 'openapi-spec-validator'), ['docs/openapi.json'])
})

async function made(path: string, body: object): Promise<Data> {
  const answer = await mooring.call('POST', path, { body })
  expect([path, answer.status]).toEqual([path, 201])
  return answer.body.data
}

test('Schemathesis finds no undocumented answer and no 5xx', { timeout: patient(240_000) }, async () => {
  const { sharedUrl, ca, token, region, regionId } = mooring.ready
  const { instance } = await made('/v1/instances', { identifier: 'pr-7', region, motor: 'postgresql-15.4.0' })
  const { tunnel } = await made(`${NAMESPACE}/tunnels`, { name: 'web', regionId })
  await using directory = await mkdtempDisposable(join(tmpdir(), 'schemathesis-'))
  // Without these most requests would end at 404.
  const settings = `
    [parameters]
    "path.organization" = "default"
    "path.namespace" = "default"
    "path.tunnel" = "${tunnel.id}"
    [[operations]]
    include-path-regex = "^/v1/instances/.id."
    parameters = { "path.id" = "${instance.id}" }
    [[operations]]
    include-operation-id = "listTunnelRequests"
    parameters = { "query.follow" = "false" }
  `
  await writeFile(join(directory.path, 'schemathesis.toml'), settings)
  const what = ['run', `${sharedUrl}/openapi.json`, '--header', `Authorization: Bearer ${token}`, '--tls-verify', ca]
  const checks = ['--checks', 'all', '--exclude-checks', NOT_A_RULE]
  // More workers than one run into a defect of CPython 3.11 (recursion depth of its parser in threads).
  const bounds = ['--max-time', String(SECONDS), '--workers', '1', '--request-timeout', '40', '--no-color']
  const { failed, output } = await outcomeOf('schemathesis', [...what, ...checks, ...bounds], directory.path)
  expect(failed ? output.slice(0, 20_000) : '').toBe('')
  expect(output).toMatch(/[1-9]\d{2,} generated/)
  expect((await mooring.call('GET', '/v1/me')).status).toBe(200)
})
