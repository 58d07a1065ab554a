import { pino } from 'pino'
import { MooringError } from '../crds/errors.ts'
import { parseSettings, type Settings } from './settings.ts'
import { start } from './start.ts'

const EXIT_FAILED = 1
const EXIT_LOCKED = 3

function createLog({ logLevel, logFormat }: Settings) {
  const format = logFormat ?? (process.stderr.isTTY ? 'pretty' : 'json')
  if (format === 'json') return pino({ level: logLevel }, pino.destination({ fd: 2, sync: true }))
  return pino({
    level: logLevel,
    transport: { target: 'pino-pretty', options: { destination: 2, colorize: process.stderr.isTTY } },
  })
}

async function main(): Promise<number | undefined> {
  const parsed = parseSettings(process.argv.slice(2), process.env)
  if ('exit' in parsed) {
    ;(parsed.exit === 0 ? process.stdout : process.stderr).write(`${parsed.text}\n`)
    return parsed.exit
  }
  const log = createLog(parsed.ok)
  try {
    const running = await start(parsed.ok, log)
    process.stdout.write(running.message)
    let stopping: Promise<void> | undefined
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        stopping ??= running.stop().then(() => process.exit(0))
      })
    }
    return undefined
  } catch (error) {
    if (!(error instanceof MooringError)) throw error
    process.stderr.write(`mooring: ${error.message}\n`)
    return error.code === 'locked' ? EXIT_LOCKED : EXIT_FAILED
  }
}

const exitCode = await main()
if (exitCode !== undefined) process.exit(exitCode)
