import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { Trap } from './step-trap.ts'

/**
 * Preloaded by `node --import`: when the step in the trap file is announced (operator/reporter.ts), it kills (SIGKILL) the process that
 * the file names, by default this one, once. Nothing runs between the step and the kill.
 */
const file = z.string().parse(process.env.STEP_TRAP_FILE)

function armed(): Trap | undefined {
  try {
    return Trap.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

subscribe('mooring.step', (message) => {
  const { name } = z.object({ name: z.string() }).parse(message)
  const trap = armed()
  if (trap?.step !== name) return
  rmSync(file)
  process.kill(trap.pid ?? process.pid, 'SIGKILL')
})
