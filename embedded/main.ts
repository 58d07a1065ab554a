import { runProgram } from '../process/run.ts'
import { parseSettings } from './settings.ts'
import { start } from './start.ts'

const EXIT_LOCKED = 3
const STOP_MS = 5_000

await runProgram({
  parse: parseSettings,
  start,
  stopMs: STOP_MS,
  exitCodeOf: ({ code }) => (code === 'locked' ? EXIT_LOCKED : undefined),
})
