// Program that runs database servers as a user other than root, with one kind of confinement. Arguments: DIRECTORY KIND UID [UID
// …]. It prints a JSON line with the states of all servers once they run and the warnings logged so far, and stops them on
// SIGTERM.
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { databaseServer, reach, runtimeIn } from '../operator/process-runtime.ts'
import type { ConfinementKind } from '../../../operator/server/process/confinement/launchers.ts'

const [directory = '', kind = '', ...uids] = process.argv.slice(2)
const warnings: string[] = []
const log = new Writable({
  write(chunk: Buffer, _encoding, done) {
    warnings.push(chunk.toString())
    done()
  },
})
const runtime = await runtimeIn(directory, { kinds: [kind as ConfinementKind], logger: pino({ level: 'warn' }, log) })
process.once('SIGTERM', () => void runtime.close().then(() => process.exit()))
// Servers do not keep this process alive, since they may outlive it.
setInterval(() => undefined, 60_000)
const states = await Promise.all(uids.map((uid) => reach(runtime, databaseServer('postgresql-15.4.0', uid), 'running')))
process.stdout.write(`${JSON.stringify({ states, warnings })}\n`)
