import { runProgram } from '../process/run.ts'
import { parseSettings } from './settings.ts'
import { start } from './start.ts'

const EXIT_LOCKED = 3

await runProgram({
  parse: parseSettings,
  start,
  exitCodeOf: ({ code }) => (code === 'locked' ? EXIT_LOCKED : undefined),
})
