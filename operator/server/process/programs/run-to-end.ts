import { type Program, spawnEngine, type Spawned } from '../spawn/spawn-engine.ts'

/**
 * Runs a program until it ends. Returns whether it succeeded; what it said is in `output`.
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
