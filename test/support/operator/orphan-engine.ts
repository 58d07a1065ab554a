import { databaseServer, reach, runtimeIn } from './process-runtime.ts'

/** Program that tests run and kill: starts the server `argv[3]` in the directory `argv[2]`, prints `running`, and stays. */
const [, , directory = '', uid] = process.argv
const runtime = await runtimeIn(directory)
await reach(runtime, databaseServer('postgresql-15.4.0', uid), 'running')
process.stdout.write('running\n')
process.stdin.resume()
