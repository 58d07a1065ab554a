import { mkdtempDisposable } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf } from '../support/api/answers.ts'
import { runEngines } from '../support/engines-command.ts'
import { patient } from '../support/patience.ts'
import { startMooring, freePorts, PORTS, runMooring } from '../support/deployment/mooring.ts'

const MOTOR = 'postgresql-15.4.0'
const { resolve } = createRequire(import.meta.url)
const POSTGRES = join(dirname(resolve('postgresql-15/package.json')), 'native/bin/postgres')

test('a POST for a motor whose server is not installed is 422 with the commands that make it served', async () => {
  await using cache = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  await using mooring = await startMooring({ env: { MOORING_ENGINES_CACHE: cache.path } })
  const post = (motor: string) =>
    mooring.call('POST', '/v1/instances', { body: { identifier: 'x', region: mooring.ready.region, motor } })
  for (const { motor, advice } of [
    {
      motor: 'mysql-8.0.29',
      advice:
        'its server was not installed at this start: run npm run engines -- add mysql-8.0.29, then npm start -- --compatible-motors',
    },
    {
      motor: 'postgresql-14.4.0',
      advice:
        'only version 14.5.0 is installed, which npm start -- --compatible-motors serves; for the exact version, run npm run engines -- add postgresql-14.4.0, then npm start again',
    },
  ]) {
    const answer = await post(motor)
    expect(codeOf(answer)).toBe('422 unsupported_motor')
    expect(answer.body.msg).toContain(advice)
    expect(answer.body.error.details).toEqual([{ field: 'motor', message: answer.body.msg }])
  }
  const [region] = (await mooring.call('GET', '/v1/regions')).body.data.regions
  expect(region?.motors).toEqual([{ id: MOTOR, version: '15.4.0', supported: true }])
})

test(
  'npm run engines installs the exact PostgreSQL 14.4, which the next start serves',
  { timeout: patient(300_000) },
  async () => {
    await using cache = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
    expect(await runEngines(['add', 'postgresql-14.4.0'], { cache: cache.path })).toMatchObject({
      ...{ code: 0, stderr: '' },
      stdout: expect.stringContaining('served by version 14.4.0 from the next npm start on') as string,
    })
    await using mooring = await startMooring({ env: { MOORING_ENGINES_CACHE: cache.path } })
    const body = { identifier: 'x', region: mooring.ready.region, motor: 'postgresql-14.4.0' }
    const answer = await mooring.call('POST', '/v1/instances', { body })
    expect(codeOf(answer)).toBe('201 OK')
    expect(answer.body.data.instance.engineVersion).toMatch(/^14\.4\b/)
  },
)

test('--engine serves a motor by a server program of the machine', async () => {
  await using mooring = await startMooring({ args: ['--engine', `${MOTOR}=${POSTGRES}`] })
  const body = { identifier: 'x', region: mooring.ready.region, motor: MOTOR }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('201 OK')
  expect(answer.body.data.instance).toMatchObject({ motor: MOTOR, engineVersion: expect.stringMatching(/^15\.4/) as string })
})

test.each([
  { what: 'is missing', engine: `${MOTOR}=/nonexistent/postgres`, says: 'does not exist' },
  { what: 'is no server', engine: `${MOTOR}=/bin/true`, says: 'is no server that Mooring knows' },
  { what: 'is of another family', engine: `mysql-8.0.29=${POSTGRES}`, says: 'is a server of postgresql' },
  { what: 'is of another series', engine: `postgresql-14.4.0=${POSTGRES}`, says: 'is version 15.4, of another series' },
])('a start with a program that $what ends with a sentence and exit code 2', async ({ engine, says }) => {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-start-'))
  const ports = freePorts(...PORTS)
  const run = runMooring(['--data-dir', join(scratch.path, 'data'), ...ports, '--engine', engine])
  const { code, stderr } = await run.ended
  expect(code).toBe(2)
  expect(stderr).toContain(`mooring: --engine ${engine}: the program ${says}`)
})

test('a start that is to keep a server warm that is not installed ends with a sentence and exit code 2', async () => {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-start-'))
  const cache = ['--engines-cache', join(scratch.path, 'cache'), '--compatible-motors']
  const run = runMooring(['--data-dir', join(scratch.path, 'data'), ...cache, '--warm', 'mongodb-7.0.2'])
  const { code, stderr } = await run.ended
  expect(code).toBe(2)
  expect(stderr).toContain('--warm mongodb-7.0.2: this installation does not serve the motor')
  expect(stderr).toContain('npm run engines -- add mongodb-7.0.2')
})
