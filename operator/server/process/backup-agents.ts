import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import pg from 'pg'
import { type Agent, createAgent } from '../../../backup/agent.ts'
import type { Schedule } from '../../../backup/context.ts'
import { systemBackupClock } from '../../../backup/clock.ts'
import type { PostgresqlFiles, ScratchProgram } from '../../../backup/postgresql/server.ts'
import type { Repository } from '../../../backup/repository/port.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import { dialling, TIMEOUTS } from '../../engines/postgresql/connection.ts'
import { SPOOL } from '../archive.ts'
import type { ServerPaths } from './files/paths.ts'

/** Repository of backups, for all servers. */
export interface Backups {
  readonly repository: Repository
  /** Overrides of the agents' schedule. */
  readonly schedule?: Partial<Schedule> | undefined
}

export interface BackupAgentsDeps {
  readonly backups: Backups
  readonly logger: Logger
}

/** Server with archiving that runs. */
export interface ArchivingServer {
  readonly paths: ServerPaths
  readonly target: AdminTarget
  readonly engineVersion: string
  /** Program of the scratch servers of restore drills. */
  readonly program: () => Promise<ScratchProgram>
}

/** Agents of the servers with archiving, in this process. */
export interface BackupAgents {
  /** Starts the agent of a server, or gives it the present address and credentials. */
  observe(server: DatabaseServer, running: ArchivingServer): Promise<void>
  /** Ends the agent of a server, given by its uid: it no longer archives, or is being removed. */
  end(uid: string): Promise<void>
  close(): Promise<void>
}

interface Entry {
  readonly prefix: string
  target: AdminTarget
  readonly agent: Promise<Agent>
}

export function createBackupAgents({ backups, logger }: BackupAgentsDeps): BackupAgents {
  const agents = new Map<string, Entry>()

  async function start(
    entry: Pick<Entry, 'prefix' | 'target'>,
    server: DatabaseServer,
    running: ArchivingServer,
  ): Promise<Agent> {
    const { paths } = running
    const scratchDirectory = join(paths.root, 'scratch')
    await mkdir(scratchDirectory, { recursive: true, mode: 0o700 })
    const files: PostgresqlFiles = {
      dataDirectory: paths.data,
      spoolDirectory: join(paths.data, SPOOL),
      scratchDirectory,
      connect: (database) => connect(entry.target, database),
      administrator: entry.target.user,
      program: await running.program(),
      engineVersion: running.engineVersion,
    }
    return createAgent({
      repository: backups.repository,
      prefix: entry.prefix,
      server: files,
      clock: systemBackupClock,
      log: logger.child({ server: server.metadata.name }),
      schedule: backups.schedule,
    })
  }

  async function end(uid: string): Promise<void> {
    const entry = agents.get(uid)
    agents.delete(uid)
    await (await entry?.agent.catch(() => undefined))?.close()
  }

  return {
    async observe(server, running) {
      const { uid } = server.metadata
      const prefix = server.spec.archive?.prefix
      if (prefix === undefined) return end(uid)
      const known = agents.get(uid)
      if (known?.prefix === prefix) {
        known.target = running.target
        return undefined
      }
      if (known) await end(uid)
      const about = { prefix, target: running.target }
      const entry: Entry = Object.assign(about, { agent: start(about, server, running) })
      agents.set(uid, entry)
      entry.agent.catch((err: unknown) => {
        logger.warn({ err, server: server.metadata.name }, 'the backup agent of a database server could not be started')
        if (agents.get(uid) === entry) agents.delete(uid)
      })
      return undefined
    },
    end,
    async close() {
      await Promise.all([...agents.keys()].map(end))
    },
  }
}

async function connect(target: AdminTarget, database = 'postgres'): Promise<pg.Client> {
  const { user, password } = target
  // As in each session of the administrator, no function or operator of a tenant is called.
  const options = '-c search_path=pg_catalog'
  const client = new pg.Client({ ...dialling(target, TIMEOUTS), user, password, database, options })
  // A broken connection emits another error after the reported one.
  client.on('error', () => undefined)
  await client.connect()
  return client
}
