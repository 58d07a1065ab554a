import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { Trap } from './step-trap.ts'

/**
 * For `node --import`: when the step that the trap file names is announced (store/steps.ts), once, kills (SIGKILL) the process that it names,
 * this one unless it says another. Nothing runs between the step and the kill.
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
