import { runProgram } from '../process/run.ts'
import { parseSettings } from './settings.ts'
import { startOperator } from './start.ts'

await runProgram({ parse: parseSettings, start: (settings, log) => startOperator({ settings, log, env: process.env }) })
