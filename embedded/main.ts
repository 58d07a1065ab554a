import { runProgram } from '../process/run.ts'
import { READY_FILE_UNUSABLE } from './ready-file.ts'
import { parseSettings } from './settings.ts'
import { start } from './start.ts'

/** What only a start finds out, and a caller is told by the exit code. */
const EXIT_CODES: ReadonlyMap<string, number> = new Map([
  ['locked', 3],
  // A wrong setting, like those that are wrong at first sight.
  [READY_FILE_UNUSABLE, 2],
])
const STOP_MS = 5_000

await runProgram({
  parse: parseSettings,
  start,
  stopMs: STOP_MS,
  exitCodeOf: ({ code }) => EXIT_CODES.get(code),
})
