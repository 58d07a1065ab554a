import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { restore, type RestoreProgress } from '../../../../backup/postgresql/restore.ts'
import type { Repository } from '../../../../backup/repository/port.ts'
import type { DatabaseServer } from '../../../../crds/database-server.ts'
import { MooringError } from '../../../../shared/errors.ts'
import { stepDone } from '../../../reporter.ts'
import type { AdminCredentials } from '../../runtime.ts'
import type { Confinement } from '../confinement/confinement.ts'
import { giveTo } from '../confinement/users.ts'
import { namelessFile, syncDirectory } from '../files/durable-files.ts'
import type { ServerPaths } from '../files/paths.ts'
import type { EngineProgram } from '../programs/program.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import { lastOutput } from '../spawn/engine-log.ts'
import { openDirectory, runToEnd } from '../spawn/spawn-engine.ts'

/** Fills a directory with the files of a server at a moment, ready for recovery. May be repeated after a crash. */
export type RestoreData = (into: string, signal: AbortSignal) => Promise<void>

export interface RestoreDataDeps {
  readonly paths: ServerPaths
  readonly program: EngineProgram
  readonly installation: string
  /** User of the recovery: a single-user server needs one that has a name. */
  readonly maker: EngineUser
  /** User that owns the finished data directory. */
  readonly user: EngineUser
  readonly restore: RestoreData
  /** Confines the recovery as the server: the files are those of a server that a tenant may have taken over. */
  readonly launcher: Confinement['launcher']
}

/**
 * Creates the data directory of a restored server: fetches its files, recovers them to the moment, and gives the administrator the password
 * of this server. The directory gets its final name when it is complete.
 * @throws MooringError `restore_failed`, with the program's last log lines; errors of the repository
 */
export async function restoreData(deps: RestoreDataDeps, admin: AdminCredentials, signal: AbortSignal): Promise<void> {
  const { paths, user, maker, program } = deps
  if (!program.recover) throw new MooringError('restore_failed', 'servers of this engine are not restored')
  await deps.restore(paths.unfinished, signal)
  stepDone('restore.files', paths.root)
  await giveTo(paths.unfinished, maker)
  await using data = await openDirectory(paths.unfinished)
  await using config = await openDirectory(paths.config)
  await using log = await openDirectory(paths.log)
  const { command, input, flush } = await program.recover(admin)
  await using statement = await namelessFile(join(paths.root, 'statement'), { text: input, user: maker })
  const { installation } = deps
  const launcher = deps.launcher(paths.view, installation)
  const own = { installation, user: maker, launcher, inherit: [data, config, log], output: paths.early }
  for (const step of [
    { ...own, command, input: statement },
    { ...own, command: flush },
  ]) {
    if (await runToEnd(step, signal)) continue
    const words = await lastOutput(paths, (line) => program.isShowable(line))
    throw new MooringError('restore_failed', `the backup could not be recovered: ${words}`)
  }
  stepDone('restore.recovered', paths.root)
  await giveTo(paths.unfinished, user)
  await rename(paths.unfinished, paths.data)
  await syncDirectory(paths.root)
}

/** Returns how a new server is filled; undefined for a server that starts empty. `announce` receives the progress. */
export function restoreOf(
  { spec }: Pick<DatabaseServer, 'spec'>,
  repository: Repository | undefined,
  announce: (message: string) => void,
): RestoreData | undefined {
  const from = spec.restore
  if (!from || !repository) return undefined
  return async (into, signal) => {
    announce(`the state of ${from.time} is being restored`)
    const onProgress = ({ doneBytes, totalBytes }: RestoreProgress): void => {
      const percent = totalBytes === 0 ? 100 : Math.floor((100 * doneBytes) / totalBytes)
      announce(`the state of ${from.time} is being restored: ${percent} % of ${Math.ceil(totalBytes / MIB)} MiB are there`)
    }
    await restore({ repository, prefix: from.prefix, time: new Date(from.time), into, signal, onProgress })
    announce(`the state of ${from.time} is being recovered from the write-ahead log`)
  }
}
const MIB = 1_048_576
