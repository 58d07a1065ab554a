import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { scratch } from '../support/postgresql/disks.ts'
import { clientsOf, untilReachable } from '../support/postgresql/postgres.ts'
import { binariesFor } from '../../operator/server/process/programs/binaries.ts'
import { engineUser } from '../../operator/server/process/spawn/engine-user.ts'
import { installEngine } from '../../operator/server/process/programs/installation.ts'
import { at } from '../../operator/server/kubernetes/engine-pod.ts'
import { postgresqlPod } from '../../operator/server/kubernetes/postgresql.ts'

const run = promisify(execFile)
/** Engines refuse to run as root. */
const NOBODY = await engineUser()
const BIN = join(await programs(), 'native/bin')
const env = { ...process.env, PATH: `${BIN}:${process.env.PATH}` }
const ADMIN = 'mooring'

/** Returns the directory of a package whose programs NOBODY may run. */
async function programs(): Promise<string> {
  const binaries = await binariesFor('postgresql-15.4.0', 'nearest')
  if (!binaries) throw new Error('there is no PostgreSQL 15')
  return installEngine(binaries, { user: NOBODY })
}

/** Volumes of a pod as local directories. */
async function volumes() {
  const root = await mkdtemp(join(await scratch(), 'admin-password-'))
  const [data, config, admin] = ['data', 'config', 'admin'].map((name) => join(root, name)) as [string, string, string]
  const here = (text: string) =>
    text.replaceAll(postgresqlPod.dataMount, data).replaceAll(at.config, config).replaceAll(at.admin, admin)
  await Promise.all([data, config, admin].map((directory) => mkdir(directory)))
  async function configure(admin: string): Promise<void> {
    for (const [name, text] of Object.entries(postgresqlPod.files({ admin, capacity: 50, tls: true })))
      await writeFile(join(config, name), here(text))
  }
  await configure(ADMIN)
  for (const directory of [root, data]) await chown(directory, NOBODY.uid, NOBODY.gid)
  return {
    ...{ data: join(data, 'pgdata'), root, configure },
    initialise: async (password: string) => {
      await writeFile(join(admin, 'password'), password)
      return run('sh', ['-c', here(`sh ${at.config}/initialise.sh`)], { ...NOBODY, env })
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}

/** Serves the data on loopback without TLS while each password is tried. */
async function serve(
  { data, root }: { data: string; root: string },
  password: string,
): Promise<AsyncDisposable & { port: number }> {
  const port = await freePort()
  const hba = join(root, 'pg_hba.conf')
  await writeFile(hba, 'host all all 127.0.0.1/32 scram-sha-256\n')
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', `hba_file=${hba}`]
  const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]
  const server: ChildProcess = spawn(join(BIN, 'postgres'), args, { ...NOBODY, stdio: 'ignore' })
  const target = { host: '127.0.0.1', port, user: ADMIN, password }
  await untilReachable({ target, isAlive: () => server.exitCode === null, log: () => '' })
  return {
    port,
    async [Symbol.asyncDispose]() {
      const exit = once(server, 'exit')
      server.kill('SIGQUIT')
      await exit
    },
  }
}

test('a server restarted after a crash has the present password of its Secret, and no other', async () => {
  await using volume = await volumes()
  await volume.initialise('the-first')
  // The server ends as in a crash.
  await (await serve(volume, 'the-first'))[Symbol.asyncDispose]()

  const { stdout, stderr } = await volume.initialise(`a 'second' \\ $one`)
  expect(`${stdout}${stderr}`).not.toContain('second')
  await using server = await serve(volume, `a 'second' \\ $one`)
  const clients = clientsOf({ host: '127.0.0.1', port: server.port, user: ADMIN, password: 'the-first' })
  await expect(clients.open()).rejects.toMatchObject({ code: '28P01' })
})

test('a start that cannot set the password fails, and does not log it', async () => {
  await using volume = await volumes()
  await volume.initialise('the-first')
  await volume.configure('nobody-there')
  const failed = await volume.initialise('very-secret').catch((error: unknown) => error as { code: number; stderr: string })
  expect(failed).toMatchObject({ code: 1 })
  expect(failed.stderr).toContain('does not exist')
  expect(failed.stderr).not.toContain('very-secret')
})
