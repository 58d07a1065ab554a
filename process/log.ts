import { type Logger, pino } from 'pino'
import { oneOf } from './setting-rules.ts'
import { setting, type SettingsOf, withDefault } from './settings.ts'

export const LOG_SETTINGS = {
  logLevel: withDefault(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), '<level>', [
    'info',
    'least severe log line',
  ]),
  logFormat: setting(oneOf(['pretty', 'json']), '<format>', 'pretty or json; default: pretty on a terminal, else json'),
} as const
export type LogSettings = SettingsOf<typeof LOG_SETTINGS>

/** Creates the structured log on stderr. JSON lines are written before the call returns, so none is lost when the process exits. */
export function createLog({ logLevel, logFormat }: LogSettings): Logger {
  const format = logFormat ?? (process.stderr.isTTY ? 'pretty' : 'json')
  if (format === 'json') return pino({ level: logLevel }, pino.destination({ fd: 2, sync: true }))
  return pino({
    level: logLevel,
    transport: { target: 'pino-pretty', options: { destination: 2, colorize: process.stderr.isTTY } },
  })
}
