import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Launcher } from '../confinement/launcher.ts'
import type { EngineUser } from './engine-user.ts'
import type { Command } from '../programs/program.ts'

export interface Program {
  readonly installation: string
  readonly command: Command
  readonly user: EngineUser
  /** What confines it; absent for a program that no tenant has a hand in. */
  readonly launcher?: Launcher | undefined
  /** What the program gets from descriptor 3 on. */
  readonly inherit: readonly FileHandle[]
  /** Its standard input, if it is to have one. */
  readonly input?: FileHandle | undefined
  /** File for what it prints. Never a pipe to us: the engine outlives us, and writing to a broken pipe would end it. */
  readonly output: string
}

/** Opens a directory to be handed to an engine, which then needs no right to traverse the way to it. */
export function openDirectory(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

export interface Spawned {
  readonly child: ChildProcess
  /** Resolves with its exit status (null: a signal ended it). Never rejects. */
  readonly exited: Promise<number | null>
}

/** Runs a program of an engine with an empty environment, in a process group of its own: ctrl-C in our terminal is not for it. */
export async function spawnEngine({ installation, command, user, launcher, inherit, input, output }: Program): Promise<Spawned> {
  await using printed = await open(output, 'w', 0o600)
  const program = join(installation, command.file)
  const [file, args] = launcher ? [launcher.file, [...launcher.args, program, ...command.args]] : [program, command.args]
  const child = spawn(file, args, {
    ...user,
    cwd: '/',
    env: { ...launcher?.env },
    detached: true,
    stdio: [input?.fd ?? 'ignore', printed.fd, printed.fd, ...inherit.map((handle) => handle.fd)],
  })
  // Listened for at once: a program that cannot load its libraries ends before we have closed our files.
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await once(child, 'spawn')
  return { child, exited }
}
