// `--engine <motor>=docker`: embedded Mooring with the Docker engine of the suite (test/cluster/setup/docker-machine.ts), whose images are
// named as the official ones. With DOCKER_HOST the engine must be this machine's own.
import { mkdtempDisposable, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { pino } from 'pino'
import { createDockerClient } from '../../operator/server/docker/docker-client.ts'
import { createDockerRuntime } from '../../operator/server/docker/docker-runtime.ts'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { startMooring, freePorts, PORTS, runMooring, type Mooring } from '../support/deployment/mooring.ts'
import { server } from '../support/operator/kubernetes-objects.ts'
import { clientOf } from '../support/families/family-client.ts'
import { type DockerMachine, openDockerMachine } from './setup/docker-machine.ts'
import { LATER } from '../support/patience.ts'

/** Versions of the official images, and of the stand-ins for them (test/cluster/images/). That for mongo:7.0.2 is of another series. */
const ENGINES = [
  { motor: 'postgresql-15.4.0', version: /^15\.4/ },
  { motor: 'mysql-5.7.38', version: /^5\.7\./ },
  { motor: 'mysql-8.0.29', version: /^8\.0\./ },
  { motor: 'mariadb-10.7.4', version: /^10\./ },
  { motor: 'mongodb-5.0.9', version: /^5\.0\./ },
]

const docker = createDockerClient()
let machine: DockerMachine

beforeAll(async () => {
  machine = await openDockerMachine(inject('cluster'))
})
afterAll(() => machine[Symbol.asyncDispose]())

interface Start {
  readonly motor: string
  readonly dataDir: string
  readonly args?: readonly string[]
}

/** Starts Mooring on the Docker engine's machine. */
async function start({ motor, dataDir, args = [] }: Start): Promise<Mooring> {
  const port = `${await machine.reserve()}`
  const engine = ['--engine', `${motor}=docker`, '--compatible-motors']
  return startMooring({ inside: machine.inside, dataDir, args: ['--shared-port', port, ...engine, ...args] })
}

/** The instance as this process reaches it. */
const reached = async (instance: Instance): Promise<Instance> => ({ ...instance, port: await machine.open(instance.port) })

async function create(mooring: Mooring, motor: string): Promise<Instance> {
  const body = { identifier: 'in a container', region: mooring.ready.region, motor }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.instance
}

/** Containers of a data directory, running or not. */
async function containersOf(dataDir: string): Promise<readonly string[]> {
  const uids = await readdir(join(dataDir, 'servers')).catch(() => [])
  const data = uids.map((uid) => join(dataDir, 'servers', uid, 'data'))
  const all = await Promise.all(
    data.map((path) =>
      docker.run(['container', 'ls', '--all', '--quiet', '--no-trunc', '--filter', `label=dev.mooring.data=${path}`]),
    ),
  )
  return all.flatMap((ids) => ids.split('\n')).filter((id) => id !== '')
}

const Container = z.object({
  Config: z.object({ User: z.string() }),
  HostConfig: z.object({
    ReadonlyRootfs: z.boolean(),
    Memory: z.int(),
    CapDrop: z.array(z.string()),
    SecurityOpt: z.array(z.string()),
    PortBindings: z.record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() }))),
  }),
})

async function inspect(container: string) {
  return Container.parse(JSON.parse(await docker.run(['container', 'inspect', '--format', '{{json .}}', container])))
}

test.each(ENGINES)(
  '$motor in a container keeps its data through kill -9 of Mooring, of the server, and a stop',
  async ({ motor, version }) => {
    const client = clientOf(motor)
    await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-docker-'))
    const dataDir = join(scratch.path, 'data')
    await using first = await start({ motor, dataDir })
    const instance = await create(first, motor)
    expect(instance.engineVersion).toMatch(version)
    expect(instance).toMatchObject({ host: '127.0.0.1', tls: { required: false } })
    const here = await reached(instance)
    await client.add(here, 'before')

    const [container = ''] = await containersOf(dataDir)
    const { Config: config, HostConfig: host } = await inspect(container)
    expect(Object.values(host.PortBindings)).toEqual([[{ HostIp: '127.0.0.1', HostPort: `${instance.port}` }]])
    expect(config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(host).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'], Memory: 2 * 1024 ** 3 })
    expect(host.SecurityOpt).toContain('no-new-privileges')

    first.process.kill('SIGKILL')
    await using second = await start({ motor, dataDir })
    expect(await containersOf(dataDir)).toEqual([container])
    expect(await client.items(here)).toEqual(['before'])
    await client.add(here, 'adopted')

    await docker.run(['kill', container])
    await expect.poll(() => client.items(here).catch(() => []), LATER).toEqual(['adopted', 'before'])

    await second[Symbol.asyncDispose]()
    expect(await containersOf(dataDir)).toEqual([])
    await using third = await start({ motor, dataDir })
    await expect.poll(() => client.items(here).catch(() => []), LATER).toEqual(['adopted', 'before'])
    expect((await third.call('DELETE', `/v1/instances/${instance.id}`)).status).toBe(200)
  },
)

test('a server is removed with its container, also by a Mooring without --engine', async () => {
  const motor = 'postgresql-15.4.0'
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-docker-'))
  const dataDir = join(scratch.path, 'data')
  await using mooring = await start({ motor, dataDir })
  await create(mooring, motor)
  mooring.process.kill('SIGKILL')
  const [uid = ''] = await readdir(join(dataDir, 'servers'))
  const [container = ''] = await containersOf(dataDir)

  const metadata = { ...server.metadata, uid }
  const removed = { ...server, metadata, spec: { ...server.spec, motor } } as const
  const runtime = createDockerRuntime({
    directory: join(dataDir, 'servers'),
    engines: new Map(),
    logger: pino({ level: 'silent' }),
    userOf: () => Promise.reject(new Error('no server is started')),
    certificate: () => Promise.reject(new Error('no server is started')),
  })
  expect(await runtime.owns(removed)).toBe(true)
  expect(await runtime.ensure(removed, { user: 'x', password: 'x' })).toMatchObject({
    reason: 'MotorUnavailable',
    message: expect.stringContaining('start with --engine postgresql-15.4.0=docker') as string,
  })
  expect(await runtime.remove(removed)).toBe(true)
  expect(await docker.run(['container', 'ls', '--all', '--quiet', '--filter', `id=${container}`])).toBe('')
  expect(await readdir(join(dataDir, 'servers'))).toEqual([])
  await runtime.close()
})

test.each([
  {
    what: 'no docker program',
    engine: 'postgresql-15.4.0=docker',
    env: { PATH: '/nonexistent' },
    says: 'Docker is not installed',
  },
  {
    what: 'no daemon',
    engine: 'postgresql-15.4.0=docker',
    env: { DOCKER_HOST: 'tcp://127.0.0.1:1' },
    says: 'the Docker daemon does not answer',
  },
  {
    what: 'an image that no registry has',
    engine: 'postgresql-15.4.0=docker:registry.invalid/postgres:1',
    says: 'the image registry.invalid/postgres:1 cannot be pulled',
  },
  {
    what: 'an image of another family',
    engine: 'mysql-8.0.29=docker:postgres:15.4',
    says: 'the image postgres:15.4 is a server of postgresql',
  },
  {
    what: 'an image of another series',
    engine: 'postgresql-14.4.0=docker:postgres:15.4',
    says: 'the image postgres:15.4 is version 15.4, of another series',
  },
])('a start with $what ends with a sentence and exit code 2', async ({ engine, env, says }) => {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-docker-'))
  const ports = freePorts(...PORTS)
  const { code, stderr } = await runMooring(['--data-dir', join(scratch.path, 'data'), ...ports, '--engine', engine], env).ended
  expect(stderr).toContain(`mooring: --engine ${engine}: ${says}`)
  expect(code).toBe(2)
})
