import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { mariadbCommand } from '../support/families/programs.ts'

// The jobs of docs/ci.md as a CI runner executes them: each step in a shell that ends at the first failure.

const run = promisify(execFile)
const DOCUMENT = new URL('../../docs/ci.md', import.meta.url)
const deployment = openDeployment()
const { installation } = deployment
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const GitHub = z.object({ jobs: z.record(z.string(), z.object({ steps: z.array(z.object({ run: z.string() })) })) })
const Script = z.object({ script: z.array(z.string()) })
const GitLab = z.object({ test: Script, delete: Script })

/** Returns the parsed YAML of a section. */
async function yamlOf(section: string): Promise<unknown> {
  const part = (await readFile(DOCUMENT, 'utf8')).split(/^## /m).find((text) => text.startsWith(`${section}\n`)) ?? ''
  return parse(/```yaml\n([\s\S]*?)```/.exec(part)?.[1] ?? '')
}

const gitHub = async (): Promise<Jobs> => {
  const { jobs } = GitHub.parse(await yamlOf('GitHub Actions'))
  const stepsOf = (job: string) => jobs[job]?.steps.map((step) => step.run) ?? []
  return { test: stepsOf('test'), delete: stepsOf('delete') }
}
const gitLab = async (): Promise<Jobs> => {
  const { test, delete: last } = GitLab.parse(await yamlOf('GitLab'))
  return { test: [test.script.join('\n')], delete: [last.script.join('\n')] }
}
/** Returns the scripts of each job. Variables that a step writes to GITHUB_ENV are set in later steps. */
type Jobs = Readonly<Record<'test' | 'delete', readonly string[]>>

async function runJob(scripts: readonly string[], identifier: string): Promise<string> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-ci-'))
  const variables = {
    MOORING_URL: installation.sharedUrl,
    MOORING_CA: installation.ca,
    MOORING_TOKEN: await acme.token('editor'),
    IDENTIFIER: identifier,
  }
  const exported = join(directory.path, 'env')
  let output = ''
  for (const script of scripts) {
    const before = await readFile(exported, 'utf8').catch(() => '')
    const carried = Object.fromEntries(before.split('\n').flatMap((line) => (line === '' ? [] : [splitOnce(line)])))
    const env = { ...process.env, ...variables, ...carried, GITHUB_ENV: exported }
    output += (await run('bash', ['-eo', 'pipefail', '-c', script], { cwd: directory.path, env })).stdout
  }
  return output
}

const splitOnce = (line: string): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]

test.each([
  { runner: 'GitHub Actions', jobs: gitHub, identifier: 'shop-pr-7' },
  { runner: 'GitLab', jobs: gitLab, identifier: 'shop/mr 8' },
])('the jobs for $runner create the database once, find it again, and delete it', async ({ jobs, identifier }) => {
  const scripts = await jobs()
  const listed = async (): Promise<readonly string[]> => {
    const { instances } = (await expectSuccess(acme.as('viewer')('GET', '/v1/instances?limit=200'))).body.data
    return instances.filter((each) => each.identifier === identifier).map(({ id }) => id)
  }
  expect(await runJob(scripts.test, identifier)).toContain('(1 row)')
  const first = await listed()
  expect(first).toHaveLength(1)
  expect(await runJob(scripts.test, identifier)).toContain('(1 row)')
  expect(await listed()).toEqual(first)
  await runJob(scripts.delete, identifier)
  expect(await listed()).toEqual([])
  await runJob(scripts.delete, identifier)
})

test('the documented script for MySQL and MariaDB logs in with a file of options', async () => {
  const part = (await readFile(DOCUMENT, 'utf8')).split(/^## /m).find((text) => text.startsWith('MySQL and MariaDB\n')) ?? ''
  const script = /```sh\n([\s\S]*?)```/.exec(part)?.[1] ?? ''
  await using bin = await mkdtempDisposable(join(tmpdir(), 'mooring-bin-'))
  // The client of the tests is not installed.
  const command = (await mariadbCommand()).map((word) => `'${word}'`).join(' ')
  await writeFile(join(bin.path, 'mariadb'), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 })
  expect(await runJob([`PATH="${bin.path}:$PATH"\n${script}`], 'shop-mariadb')).toContain('10.11.19-MariaDB')
})

test('an admin creates the API token for pipelines with the documented command', async () => {
  const part = (await readFile(DOCUMENT, 'utf8')).split(/^## /m).find((text) => text.startsWith('What the jobs need')) ?? ''
  const script = (/```sh\n([\s\S]*?)```/.exec(part)?.[1] ?? '')
    .replace('organization=default', `organization=${acme.organization}`)
    .replace('namespace=default', `namespace=${acme.namespace}`)
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-ci-'))
  const ca = join(directory.path, 'ca.pem')
  await run('sh', ['-c', 'printf %s "$TEXT" >"$0"', ca], { env: { ...process.env, TEXT: installation.ca } })
  const env = { ...process.env, MOORING_URL: installation.sharedUrl, MOORING_CA: ca, MOORING_TOKEN: await acme.token('admin') }
  const { stdout } = await run('bash', ['-eo', 'pipefail', '-c', script], { env })
  expect(stdout).toMatch(/^moor_\w+\n$/)
})
