import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { hasCode, MooringError } from '../../shared/errors.ts'
import { OWN_PREFIX } from './data-files.ts'

/** File that names the restore that made a directory. It is written first and never removed. */
const MARKER = `${OWN_PREFIX}restore.json`
const UNFINISHED = `${MARKER}.new`
/** Directory from which the server takes WAL during recovery; it removes the directory at the end. */
export const WAL_DIRECTORY = `${OWN_PREFIX}wal`

const Request = z.object({ prefix: z.string(), time: z.iso.datetime() })
const Complete = Request.extend({ recoveredTo: z.iso.datetime(), backupId: z.string() })
const Marker = z.union([Complete, Request])
type Complete = z.output<typeof Complete>

/**
 * Empties a directory that an earlier call left half-made. @returns the result of an earlier call that succeeded, for the same request
 * @throws MooringError `directory_not_empty`
 */
export async function prepareDirectory(directory: string, request: z.output<typeof Request>): Promise<Complete | undefined> {
  const marker = await readMarker(directory)
  const names = await readdir(directory)
  const complete = Complete.safeParse(marker).data
  if (complete?.prefix === request.prefix && complete.time === request.time) return complete
  if (complete || (!marker && names.some((name) => name !== UNFINISHED))) {
    throw new MooringError(
      'directory_not_empty',
      `${directory} has files that this restore did not make: give an empty directory`,
    )
  }
  // The marker is last: after a kill in between, the directory is still known as half-made.
  for (const name of names) if (name !== MARKER) await rm(join(directory, name), { recursive: true, force: true })
  await writeMarker(directory, request)
  return undefined
}

async function readMarker(directory: string): Promise<z.output<typeof Marker> | undefined> {
  try {
    return Marker.safeParse(JSON.parse(await readFile(join(directory, MARKER), 'utf8'))).data
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError) return undefined
    throw error
  }
}

async function writeMarker(directory: string, marker: z.output<typeof Marker>): Promise<void> {
  const unfinished = join(directory, UNFINISHED)
  await writeFile(unfinished, `${JSON.stringify(marker)}\n`, { mode: 0o600, flush: true })
  await rename(unfinished, join(directory, MARKER))
  await sync(directory)
}

/** Records that all files are present and durable. */
export async function markComplete(directory: string, complete: Complete): Promise<void> {
  await writeMarker(directory, complete)
}

/** Settings that could make the server recover in another way: those of an earlier restore or standby are removed. */
const RECOVERY_SETTING =
  /^\s*(?:recovery_\w+|restore_command|archive_cleanup_command|primary_conninfo|primary_slot_name|hot_standby|promote_trigger_file)\b/

/** End of recovery: all commits at or before a time, or all records that begin before a position of the log, such as `0/3000060`. */
export type RecoveryTarget = { readonly time: Date } | { readonly position: string }

function targetSettings(target: RecoveryTarget): Readonly<Record<string, string>> {
  if ('position' in target) return { recovery_target_lsn: target.position, recovery_target_inclusive: 'off' }
  const time = target.time.toISOString().replace('T', ' ').replace('Z', '+00')
  return { recovery_target_time: time, recovery_target_inclusive: 'on' }
}

/** Writes the settings of recovery. They have no effect later: the server removes the signal file at the end of recovery. */
export async function addRecovery(directory: string, target: RecoveryTarget): Promise<void> {
  const file = join(directory, 'postgresql.auto.conf')
  const lines = (await readFile(file, 'utf8').catch(() => ''))
    .split('\n')
    .filter((line) => line !== '' && !RECOVERY_SETTING.test(line))
  const settings = {
    restore_command: `test -f "${WAL_DIRECTORY}/%f" && cp "${WAL_DIRECTORY}/%f" "%p"`,
    recovery_end_command: `rm -rf ${WAL_DIRECTORY}`,
    ...targetSettings(target),
    recovery_target_timeline: 'current',
    recovery_target_action: 'promote',
    // A standby would insist on as many connection slots as the former server had.
    hot_standby: 'off',
  }
  const added = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`)
  await writeFile(file, [...lines, ...added, ''].join('\n'), { mode: 0o600 })
  await writeFile(join(directory, 'recovery.signal'), '', { mode: 0o600 })
}

/** Number of files that are flushed at the same time. */
const PARALLEL = 32

/** Makes all files durable: PostgreSQL assumes that the files from which it starts are. */
export async function syncFiles(directory: string): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = [directory, ...entries.map((entry) => join(entry.parentPath, entry.name))]
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (let path = paths.pop(); path !== undefined; path = paths.pop()) await sync(path)
    }),
  )
}

async function sync(path: string): Promise<void> {
  await using handle = await open(path)
  await handle.sync()
}
