import { databaseServer, reach, runtimeIn } from './process-runtime.ts'

/** Run as a program by the tests, which kill it: starts the server `argv[3]` in the directory `argv[2]`, says `running`, stays. */
const [, , directory = '', uid] = process.argv
const runtime = await runtimeIn(directory)
await reach(runtime, databaseServer('postgresql-15.4.0', uid), 'running')
process.stdout.write('running\n')
process.stdin.resume()
