import { z } from 'zod'
import { LOG_SETTINGS } from '../process/run.ts'
import { Path, Text, whole } from '../process/setting-rules.ts'
import { createSettingsParser, type Setting, type SettingsOf, withDefault } from '../process/settings.ts'

const Time = z.iso.datetime('a UTC time such as 2030-01-31T12:00:00Z')

/** A setting without a usable default: the operator gives each. */
const required = <R extends Setting['rule']>(rule: R, value: Setting['value'], about: string) =>
  withDefault(rule, value, ['', about])

/** Settings of both programs. */
const COMMON = {
  repository: required(Text, '<url>', 'repository of backups: a directory, or s3://bucket/prefix'),
  prefix: required(z.uuid('a UUID'), '<uid>', 'uid of the database whose backups these are'),
  data: required(Path, '<path>', 'data directory of the server'),
  ...LOG_SETTINGS,
} as const

const AGENT = {
  ...COMMON,
  spool: required(Path, '<path>', 'directory into which the server copies its write-ahead log'),
  scratch: required(Path, '<path>', 'directory for the scratch servers of restore drills'),
  socket: required(Path, '<path>', 'directory of the Unix socket of the server'),
  port: required(whole(1, 65_535), '<port>', 'port of the server'),
  admin: required(Text, '<name>', 'name of the administrator'),
  passwordFile: required(Path, '<path>', 'file with the password of the administrator'),
  program: required(Path, '<path>', 'program `postgres` for restore drills'),
  engineVersion: required(Text, '<version>', 'version of the server, such as 15.4'),
} as const

const RESTORE = { ...COMMON, restoreTime: required(Time, '<time>', 'moment to restore') } as const

export type AgentSettings = SettingsOf<typeof AGENT>
export type RestoreSettings = SettingsOf<typeof RESTORE>

export const parseAgentSettings = createSettingsParser({
  program: 'node backup/main.ts',
  description: 'Archives the database server in whose pod it runs.',
  table: AGENT,
})

export const parseRestoreSettings = createSettingsParser({
  program: 'node backup/restore-main.ts',
  description: 'Fills the data directory of a new database server from backups, unless it has data.',
  table: RESTORE,
})
