import { runProgram } from '../process/run.ts'
import { parseSettings } from './settings.ts'
import { startOperator } from './start.ts'

/** Time to stop, slightly shorter than the pod's grace period (charts/mooring). */
const STOP_MS = 28_000

await runProgram({
  parse: parseSettings,
  stopMs: STOP_MS,
  start: (settings, log) => startOperator({ settings, log, env: process.env }),
})
