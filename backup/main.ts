import { mkdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { runProgram, type Running } from '../process/run.ts'
import { createAgent } from './agent.ts'
import { systemBackupClock } from './clock.ts'
import { openRepository } from './repository/open.ts'
import { type AgentSettings, parseAgentSettings } from './settings.ts'

/** Agent beside a database server of a cluster, in a container of its pod. */
await runProgram<AgentSettings>({ parse: parseAgentSettings, start, stopMs: 20_000 })

const CONNECT_MS = 5_000

async function start(settings: AgentSettings, log: Logger): Promise<Running> {
  const { data, spool, scratch, admin, engineVersion, prefix } = settings
  await mkdir(scratch, { recursive: true, mode: 0o700 })
  const agent = createAgent({
    repository: openRepository(settings.repository),
    prefix,
    clock: systemBackupClock,
    log,
    server: {
      dataDirectory: data,
      spoolDirectory: spool,
      scratchDirectory: scratch,
      connect: (database) => connect(settings, database),
      administrator: admin,
      program: { postgres: settings.program, env: {} },
      engineVersion,
    },
  })
  return { stop: () => agent.close() }
}

/** The password is read for each connection: the operator may have replaced it. */
async function connect({ socket, port, admin, passwordFile }: AgentSettings, database = 'postgres'): Promise<pg.Client> {
  const password = (await readFile(passwordFile, 'utf8')).replace(/\n$/, '')
  const client = new pg.Client({
    host: socket,
    port,
    user: admin,
    password,
    database,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'mooring',
    options: '-c search_path=pg_catalog',
  })
  // A broken connection emits another error after the reported one.
  client.on('error', () => undefined)
  await client.connect()
  return client
}
