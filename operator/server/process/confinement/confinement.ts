import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type EngineUser, engineUser } from '../spawn/engine-user.ts'
import { runToEnd } from '../programs/run-to-end.ts'
import { openDirectory } from '../spawn/spawn-engine.ts'
import { landlockLauncher } from './landlock.ts'
import type { Launcher } from './launcher.ts'
import { namespaceLauncher } from './namespaces.ts'
import { userOf } from './users.ts'

/** What keeps a server that a tenant has taken over from all but its own files, best first (docs/isolation.md, "A server taken over"). */
export const CONFINEMENTS = ['users', 'namespaces', 'landlock', 'none'] as const
export type ConfinementKind = (typeof CONFINEMENTS)[number]

/** How the processes of database servers are kept apart from each other and from us. */
export interface Confinement {
  readonly kind: ConfinementKind
  /** Whether servers may make shared memory by name. All of one user share that place, unless it is hidden from them. */
  readonly sharedMemory: boolean
  /** Makes data directories, before any server runs on them. */
  readonly maker: EngineUser
  /** Owner of a server's data and processes. @throws MooringError `no_engine_user` */
  readonly userOf: (server: string) => Promise<EngineUser>
  /** Command before the program that serves; undefined when it is run as it is. `root` is an empty directory to mount on. */
  readonly launcher: (root: string, installation: string) => Launcher | undefined
}

export interface ConfinementDeps {
  /** Of the servers. */
  readonly directory: string
  readonly logger: Logger
  /** Kinds to choose from; all that there are unless given. */
  readonly kinds?: readonly ConfinementKind[] | undefined
}

/** Says what an unconfined server could do, and what closes it. */
const OPEN =
  'database servers are not confined: one that a tenant takes over can read all files of this user, the state and the keys of this ' +
  'installation among them. Start as root, or allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, ' +
  'kernel.apparmor_restrict_unprivileged_userns=0), or use Linux 5.13 or newer with Landlock and perl'

/** Chooses the first kind that works here. @throws MooringError `no_engine_user` */
export async function chooseConfinement({ directory, logger, kinds = CONFINEMENTS }: ConfinementDeps): Promise<Confinement> {
  const maker = await engineUser()
  if (process.getuid?.() === 0) {
    return { kind: 'users', maker, sharedMemory: true, userOf: (server) => userOf(directory, server), launcher: () => undefined }
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

/** Whether a program started so has its three directories, and cannot read a file beside them by either way to it. */
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
      ...{ user, inherit: [data, config, log], output: join(root, 'output') },
    }
    return await runToEnd(program, AbortSignal.timeout(PROBE_MS))
  } catch {
    return false
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

const PROBE_MS = 5_000
