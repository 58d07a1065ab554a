import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type EngineUser, engineUser } from '../spawn/engine-user.ts'
import { runToEnd, openDirectory } from '../spawn/spawn-engine.ts'
import {
  dataPathLauncher,
  CONFINEMENTS,
  type ConfinementKind,
  landlockLauncher,
  type Launcher,
  namespaceLauncher,
} from './launchers.ts'
import { userOf } from './users.ts'

/** Isolation of the processes of database servers from each other and from Mooring. */
export interface Confinement {
  readonly kind: ConfinementKind
  /** Whether servers may use named shared memory. All processes of one user share it, unless it is hidden from them. */
  readonly sharedMemory: boolean
  /** User that creates data directories, before any server runs on them. */
  readonly maker: EngineUser
  /** Owner of a server's data and processes. @throws MooringError `no_engine_user` */
  readonly userOf: (server: string) => Promise<EngineUser>
  /** Command that starts the server confined; undefined when it runs directly. `root` is an empty directory to mount on. */
  readonly launcher: (root: string, installation: string) => Launcher | undefined
  /** Launcher for a program that needs a path to its data directory which `user` can traverse; undefined when it has one. */
  readonly pathLauncher?: (user: EngineUser, installation: string) => Launcher
}

export interface ConfinementDeps {
  /** Directory of the servers. */
  readonly directory: string
  readonly logger: Logger
  /** Kinds to choose from. Default: all. */
  readonly kinds?: readonly ConfinementKind[] | undefined
}

/** Warning about an unconfined server: the risk, and what removes it. */
const OPEN =
  'database servers are not confined: a compromised one can read all files of this user, the state and the keys of this ' +
  'installation among them. Start as root, or allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, ' +
  'kernel.apparmor_restrict_unprivileged_userns=0), or use Linux 5.13 or newer with Landlock and perl'

/** Chooses the strongest kind that works on this machine. @throws MooringError `no_engine_user` */
export async function chooseConfinement({ directory, logger, kinds = CONFINEMENTS }: ConfinementDeps): Promise<Confinement> {
  const maker = await engineUser()
  if (process.getuid?.() === 0) {
    return {
      kind: 'users',
      maker,
      sharedMemory: true,
      userOf: (server) => userOf(directory, server),
      launcher: () => undefined,
      pathLauncher: dataPathLauncher,
    }
  }
  const own = { maker, userOf: () => Promise.resolve(maker) }
  const candidates: readonly Pick<Confinement, 'kind' | 'sharedMemory' | 'launcher'>[] = [
    { kind: 'namespaces', sharedMemory: true, launcher: namespaceLauncher },
    { kind: 'landlock', sharedMemory: false, launcher: (_root, installation) => landlockLauncher(installation) },
  ]
  for (const { kind, sharedMemory, launcher } of candidates) {
    if (!kinds.includes(kind) || !(await works(directory, maker, launcher))) continue
    logger.info({ confinement: kind }, 'database servers are confined')
    return { kind, sharedMemory, ...own, launcher }
  }
  logger.warn(OPEN)
  return { kind: 'none', sharedMemory: false, ...own, launcher: () => undefined }
}

/** Whether a program started by the launcher can use its three directories, and cannot read another file by either of two paths. */
async function works(directory: string, user: EngineUser, launcher: Confinement['launcher']): Promise<boolean> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const root = await mkdtemp(join(directory, '.probe-'))
  try {
    const secret = join(root, 'secret')
    await writeFile(secret, 'secret')
    for (const name of ['root', 'data', 'config', 'log']) await mkdir(join(root, name))
    await using data = await openDirectory(join(root, 'data'))
    await using config = await openDirectory(join(root, 'config'))
    await using log = await openDirectory(join(root, 'log'))
    const probe = `: >/proc/self/fd/3/a && : >/proc/self/fd/5/a && ! read -r line <"$1" && ! read -r line </proc/self/fd/3/../secret`
    const program = {
      installation: '/',
      command: { file: 'bin/sh', args: ['-c', probe, 'probe', secret] },
      launcher: launcher(join(root, 'root'), '/usr'),
      user,
      inherit: [data, config, log],
      output: join(root, 'output'),
    }
    return await runToEnd(program, AbortSignal.timeout(PROBE_MS))
  } catch {
    return false
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

const PROBE_MS = 5_000
