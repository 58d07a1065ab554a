import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { restore } from '../../../backup/postgresql/restore.ts'
import { landlockLauncher, namespaceLauncher } from '../../../operator/server/process/confinement/launchers.ts'
import { restoreData } from '../../../operator/server/process/data/restore.ts'
import { makeDirectories, serverPaths } from '../../../operator/server/process/files/paths.ts'
import type { EngineProgram } from '../../../operator/server/process/programs/program.ts'
import { postgresql } from '../../../operator/server/process/programs/postgresql.ts'
import { type EngineUser, engineUser } from '../../../operator/server/process/spawn/engine-user.ts'
import { startArchived, startFrom } from '../../support/backup/archived-server.ts'
import { momentOf, PREFIX, startAgent, testRepository, valueOf } from '../../support/backup/agents.ts'
import { ADMIN, SERIES } from '../../support/postgresql/postgres.ts'
import { patient } from '../../support/patience.ts'

/** Program whose recovery does what the data of a compromised server could make PostgreSQL do: it runs a command. */
const programOf = (command: string): EngineProgram => ({
  ...postgresql,
  recover: () =>
    Promise.resolve({
      command: { file: '/bin/sh', args: ['-c', `${command}; cat >/proc/self/fd/3/statement`] },
      input: 'the statement',
      flush: { file: '/bin/sh', args: ['-c', `: >/proc/self/fd/3/flushed; ${command}`] },
    }),
})

const { signal } = new AbortController()

/** Empty directories of a server that `user` can reach, and a secret beside them. */
async function directories(user: EngineUser) {
  const root = await mkdtemp(join(tmpdir(), 'mooring-recovery-'))
  await chmod(root, 0o755)
  const secret = join(root, 'token')
  await writeFile(secret, 'the token of the administrator', { mode: 0o600 })
  await chown(secret, user.uid, user.gid)
  const paths = serverPaths(root, 'server')
  await makeDirectories(paths, user)
  await chown(paths.root, user.uid, user.gid)
  return { paths, secret, [Symbol.asyncDispose]: () => rm(root, { recursive: true }) }
}

describe.each([
  { kind: 'namespaces', launcher: namespaceLauncher },
  { kind: 'landlock', launcher: (_root: string, installation: string) => landlockLauncher(installation) },
])('the recovery of a backup, confined by $kind,', ({ launcher }) => {
  test('reads no file outside of the data directory', { timeout: patient(240_000) }, async () => {
    const user = await engineUser()
    await using at = await directories(user)
    const { paths } = at
    const steal = `cat "${at.secret}" /proc/self/fd/3/../../token >>/proc/self/fd/3/stolen 2>&1 || true`
    const deps = { paths, program: programOf(steal), installation: '/usr', maker: user, user, launcher }
    const restoring = async (into: string): Promise<void> => {
      await mkdir(into)
    }
    await restoreData({ ...deps, restore: restoring }, ADMIN, signal)
    expect(await readFile(join(paths.data, 'statement'), 'utf8')).toBe('the statement')
    expect(await readFile(join(paths.data, 'flushed'), 'utf8')).toBe('')
    expect(await readFile(join(paths.data, 'stolen'), 'utf8')).not.toContain('the token of the administrator')
  })

  test.each(SERIES)('recovers a backup of PostgreSQL %s', { timeout: patient(240_000) }, async (series) => {
    await using kept = await testRepository()
    await using server = await startArchived(series)
    await using agent = startAgent(server, kept)
    await agent.archiving()
    const client = await server.client()
    await client.query('CREATE TABLE kept AS SELECT 7 AS n')
    const time = await momentOf(client)
    await agent.reaches(time)
    const user = server.files.program.user ?? (await engineUser())
    await using at = await directories(user)
    // The program is native/bin/postgres of its installation.
    const installation = dirname(dirname(dirname(server.files.program.postgres)))
    const restoring = async (into: string): Promise<void> => {
      await restore({ ...kept, prefix: PREFIX, time, into, signal })
    }
    const deps = { paths: at.paths, program: postgresql, installation, maker: user, user, launcher }
    await restoreData({ ...deps, restore: restoring }, ADMIN, signal)
    await using restored = await startFrom(series, (directory) => cp(at.paths.data, directory, { recursive: true }))
    expect(await valueOf(await restored.client(), 'SELECT n FROM kept')).toBe(7)
  })
})
