import { relative } from 'node:path'
import type pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import type { BackupClock } from '../clock.ts'
import type { Repository } from '../repository/port.ts'
import { dataFiles } from './data-files.ts'
import { partKey } from './catalog/keys.ts'
import type { Manifest } from './catalog/manifest.ts'
import { createPartsWriter } from './parts.ts'
import type { PostgresqlFiles } from './server.ts'
import { createThrottle } from './throttle.ts'
import { parseSegment, SEGMENT_BYTES } from './catalog/wal-names.ts'

export const BACKUP_FAILED = 'backup_failed'

export interface BaseBackupDeps {
  readonly repository: Repository
  readonly prefix: string
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly bytesPerSecond: number
}

interface Copy {
  readonly label: string
  readonly stopFile: string
  readonly finishedAt: string
}

/**
 * Copies the files of a running server into the repository, without a manifest: the caller writes the returned one when the WAL that the
 * backup needs has been shipped. The end of this process ends the backup in the server, too.
 * @throws MooringError `backup_failed`, or a code of the repository
 */
export async function copyBase(
  deps: BaseBackupDeps,
  { id, kind }: Pick<Manifest, 'id' | 'kind'>,
  signal: AbortSignal,
): Promise<Manifest> {
  const { repository, prefix, server, clock, bytesPerSecond } = deps
  const startedAt = new Date(clock.date()).toISOString()
  const client = await server.connect()
  // The statement that begins a backup waits for a checkpoint: only the end of the connection interrupts it.
  const disconnect = (): void => void client.end().catch(() => undefined)
  signal.addEventListener('abort', disconnect, { once: true })
  try {
    const facts = await factsOf(client)
    const writer = createPartsWriter({
      repository,
      prefix,
      signal,
      keyOf: (number) => partKey(id, number),
      take: createThrottle(clock, bytesPerSecond, signal),
    })
    await begin(client, server, id)
    for await (const entry of dataFiles(server.dataDirectory, relative(server.dataDirectory, server.spoolDirectory))) {
      signal.throwIfAborted()
      await writer.add(entry)
    }
    const copy = await end(client, server)
    await writer.addText('backup_label', copy.label)
    const parts = await writer.end()
    const dataBytes = writer.dataBytes()
    const start = parseSegment(/^START WAL LOCATION: \S+ \(file (\w+)\)$/m.exec(copy.label)?.[1] ?? '')
    const stop = parseSegment(copy.stopFile)
    if (!start || !stop) throw new MooringError(BACKUP_FAILED, 'the server reported no segment of WAL for the backup')
    return {
      format: 1,
      id,
      kind,
      startedAt,
      finishedAt: copy.finishedAt,
      dataBytes,
      engineVersion: server.engineVersion,
      systemIdentifier: facts.system,
      databases: await databasesOf(client),
      timeline: start.timeline,
      startSegment: start.number,
      stopSegment: stop.number,
      parts: [...parts],
    }
  } finally {
    signal.removeEventListener('abort', disconnect)
    await client.end().catch(() => undefined)
  }
}

async function factsOf(client: pg.Client): Promise<{ system: string }> {
  const { rows } = await client.query<{ system: string; segment: string; tablespaces: string | null }>(
    `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system,
      (SELECT setting FROM pg_settings WHERE name = 'wal_segment_size') AS segment,
      (SELECT string_agg(spcname, ', ') FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')) AS tablespaces`,
  )
  const [facts] = rows
  if (!facts) throw new MooringError(BACKUP_FAILED, 'the server reported nothing about itself')
  if (Number(facts.segment) !== SEGMENT_BYTES)
    throw new MooringError(BACKUP_FAILED, `segments of WAL have ${facts.segment} bytes; only ${SEGMENT_BYTES} are supported`)
  if (facts.tablespaces !== null)
    throw new MooringError(
      BACKUP_FAILED,
      `tablespaces outside of the data directory are not backed up: drop ${facts.tablespaces}`,
    )
  return facts
}

async function begin(client: pg.Client, server: PostgresqlFiles, label: string): Promise<void> {
  // A server at rest makes its checkpoint at once; a busy one is bounded by its own settings.
  const text = isBefore15(server) ? 'SELECT pg_start_backup($1, true, false)' : 'SELECT pg_backup_start($1, true)'
  await client.query(text, [label])
}

async function end(client: pg.Client, server: PostgresqlFiles): Promise<Copy> {
  // The server does not wait for its WAL: the caller does, until the WAL is in the repository.
  const stop = isBefore15(server) ? 'pg_stop_backup(false, false)' : 'pg_backup_stop(false)'
  const { rows } = await client.query<{ label: string; file: string; map: string | null }>(
    `SELECT labelfile AS label, pg_walfile_name(lsn) AS file, spcmapfile AS map FROM ${stop}`,
  )
  const { rows: times } = await client.query<{ at: Date }>('SELECT clock_timestamp() AS at')
  const [stopped] = rows
  const [time] = times
  if (!stopped || !time) throw new MooringError(BACKUP_FAILED, 'the server did not end the backup')
  // The driver truncates to milliseconds; one more is after the end of the backup.
  return { label: stopped.label, stopFile: stopped.file, finishedAt: new Date(time.at.getTime() + 1).toISOString() }
}

async function databasesOf(client: pg.Client): Promise<Manifest['databases']> {
  const { rows } = await client.query<{ name: string; size: string }>(
    'SELECT datname AS name, pg_database_size(oid) AS size FROM pg_database WHERE datallowconn',
  )
  return rows.map(({ name, size }) => ({ name, sizeBytes: Number(size) }))
}

const isBefore15 = ({ engineVersion }: PostgresqlFiles): boolean => Number.parseInt(engineVersion, 10) < 15
