import { MongoClient } from 'mongodb'
import mysql from 'mysql2/promise'
import pg from 'pg'
import type { Family } from '../../../crds/motor.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { addressOf } from '../../../operator/engines/mongodb/connection.ts'
import type { ServerLogin } from '../deployment/data-directory.ts'

/** Makes a server log every statement, as an administrator of the machine could. The logs are below the server's data directory. */
export const logEverything = ({ family, target }: ServerLogin): Promise<void> => SWITCHES[family](target)

const SWITCHES: Readonly<Record<Family, (target: AdminTarget) => Promise<void>>> = {
  postgresql,
  mysql: generalLog,
  mariadb: generalLog,
  mongodb: profiler,
}

async function postgresql({ host, port, user, password }: AdminTarget): Promise<void> {
  const client = new pg.Client({ host, port, user, password, database: 'postgres' })
  client.on('error', () => undefined)
  await client.connect()
  for (const setting of ["log_statement = 'all'", 'log_min_duration_statement = 0', "log_min_messages = 'debug1'"]) {
    await client.query(`ALTER SYSTEM SET ${setting}`)
  }
  await client.query('SELECT pg_reload_conf()')
  await client.end()
}

async function generalLog({ host, port, user, password }: AdminTarget): Promise<void> {
  const session = await mysql.createConnection({ host, port, user, password })
  for (const setting of [
    ...["log_output = 'FILE,TABLE'", "general_log_file = 'statements.log'", "slow_query_log_file = 'slow.log'"],
    ...['long_query_time = 0', 'slow_query_log = ON', 'general_log = ON'],
  ]) {
    await session.query(`SET GLOBAL ${setting}`)
  }
  await session.end()
}

async function profiler(target: AdminTarget): Promise<void> {
  const { user: username, password } = target
  await using client = await new MongoClient(addressOf(target), {
    auth: { username, password },
    directConnection: true,
  }).connect()
  const admin = client.db('admin')
  // The level of a database, and the threshold of all databases.
  await admin.command({ profile: 2, slowms: 0, sampleRate: 1 })
  await admin.command({ setParameter: 1, logComponentVerbosity: { verbosity: 2 } })
}
