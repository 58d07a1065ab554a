import { ENGINE_UNUSABLE } from '../operator/server/process/programs/own-engine.ts'
import { runProgram } from '../process/run.ts'
import { NOT_SERVED } from './motors.ts'
import { ACME_FILE_UNUSABLE } from './acme/acme-files.ts'
import { TLS_FILE_UNUSABLE } from './tls-files.ts'
import { READY_FILE_UNUSABLE } from './publish.ts'
import { parseSettings } from './settings.ts'
import { start } from './start.ts'

/** Exit codes of errors that only a start detects. */
const EXIT_CODES: ReadonlyMap<string, number> = new Map([
  ['locked', 3],
  // An invalid setting, like those found when parsing.
  [READY_FILE_UNUSABLE, 2],
  [ACME_FILE_UNUSABLE, 2],
  [TLS_FILE_UNUSABLE, 2],
  [NOT_SERVED, 2],
  [ENGINE_UNUSABLE, 2],
])
const STOP_MS = 5_000

await runProgram({
  parse: parseSettings,
  start,
  stopMs: STOP_MS,
  exitCodeOf: ({ code }) => EXIT_CODES.get(code),
})
