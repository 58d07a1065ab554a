import { type Program, spawnEngine, type Spawned } from '../spawn/spawn-engine.ts'

/**
 * Runs a program until it ends; its output goes to `output`. @returns whether it succeeded
 * @throws the signal's reason when it aborts, with the program's whole process group killed
 */
export async function runToEnd(program: Program, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted()
  const spawned = await spawnEngine(program)
  const status = await exitStatus(spawned, signal)
  signal.throwIfAborted()
  return status === 0
}

async function exitStatus({ child, exited }: Spawned, signal: AbortSignal): Promise<number | null> {
  // The child has not been waited for, so its pid cannot be reused yet.
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
