import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MooringError } from '../../../crds/errors.ts'
import type { AdminCredentials } from '../runtime.ts'
import { syncDirectory } from './durable-file.ts'
import { lastWords } from './engine-log.ts'
import type { EngineUser } from './engine-user.ts'
import { makeOwned, type ServerPaths } from './paths.ts'
import type { Command, EngineProgram } from './program.ts'
import { openDirectory, spawnEngine, type Spawned } from './spawn-engine.ts'

interface InitialiseDeps {
  readonly paths: ServerPaths
  readonly program: EngineProgram
  readonly installation: string
  readonly user: EngineUser
}

/**
 * Makes the data directory, with the admin in it: whole or not at all, since it gets its name when it is done.
 * @throws MooringError `initialise_failed`, with the program's last words
 */
export async function initialiseData(deps: InitialiseDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<void> {
  const { paths, program, user } = deps
  for (const command of program.initialise(credentials.user)) {
    // Retried: the program of a process of ours that was killed may still be writing for a moment.
    await rm(paths.unfinished, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    await makeOwned(paths.unfinished, user)
    if (!(await runs(deps, command, credentials, signal))) continue
    await rename(paths.unfinished, paths.data)
    await syncDirectory(paths.root)
    return
  }
  throw new MooringError(
    'initialise_failed',
    `the data directory could not be made: ${await lastWords(paths, (line) => program.isShowable(line))}`,
  )
}

async function runs(
  { paths, installation, user }: InitialiseDeps,
  command: Command,
  { password }: AdminCredentials,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted()
  await using data = await openDirectory(paths.unfinished)
  await using secret = await namelessFile(join(paths.root, 'password'), user)
  await secret.writeFile(`${password}\n`)
  const spawned = await spawnEngine({ installation, command, user, inherit: [data, secret], output: paths.early })
  const status = await exitStatus(spawned, signal)
  signal.throwIfAborted()
  return status === 0
}

/** A file that only who inherits it can read, and that is gone when they all are. */
async function namelessFile(path: string, user: EngineUser): Promise<FileHandle> {
  await rm(path, { force: true })
  const file = await open(path, 'wx+', 0o600)
  await file.chown(user.uid, user.gid)
  await rm(path)
  return file
}

/** Kills the whole process group when `signal` aborts. */
async function exitStatus({ child, exited }: Spawned, signal: AbortSignal): Promise<number | null> {
  // It is our child and not yet waited for, so the pid is still its own.
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    return await exited
  } finally {
    signal.removeEventListener('abort', kill)
  }
}
