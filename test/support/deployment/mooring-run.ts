import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../../embedded/main.ts', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Embedded Mooring whose start may fail. */
export interface MooringRun {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
}

/** Runs an embedded Mooring with exactly these arguments. */
export function runMooring(args: readonly string[]): MooringRun {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()))
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, ...output })))
  return { process: child, ended }
}

/** Returns the arguments that set each of these ports to `auto`. */
export const freePorts = (...names: readonly string[]): readonly string[] => names.flatMap((name) => [`--${name}-port`, 'auto'])
