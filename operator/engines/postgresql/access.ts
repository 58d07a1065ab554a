import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { engineSources, isAdmitted } from '../access.ts'
import { type AdminTarget, type EngineAdmin, EngineCode } from '../engine.ts'
import type { Connection } from './connection.ts'
import { admittedIn, admittedLine } from './settings.ts'

/** Maximum number of checks, and the time between two of them: 4 s in total. */
const ROUNDS = 160
const PAUSE_MS = 25

interface Deps {
  readonly connection: Connection
  readonly target: AdminTarget
}

/** Restriction of a server's tenants to source addresses. The rule itself is in pg_hba.conf, which the runtime writes (settings.ts). */
export interface Access {
  readonly admit: EngineAdmin['admit']
  /** Ends sessions from sources that are not admitted. A login that began before the rules changed may complete after `admit`. */
  readonly endExcluded: EngineAdmin['endExcluded']
  /** Whether a tenant could log in from the operator's address. */
  readonly includesOperator: () => Promise<boolean>
}

export function createAccess({ connection, target }: Deps): Access {
  /** Sources whose sessions are not ended. */
  let current: readonly string[] | undefined
  /** Rules that the last complete `admit` found. */
  let settled: string | undefined

  /** Ends the sessions of tenants from elsewhere. Returns the number of these sessions. */
  async function endSessions(): Promise<number> {
    const sources = current
    if (sources === undefined) return 0
    const sessions = await connection.watch.query<{ pid: number; address: string }>(
      `SELECT pid, host(client_addr) AS address FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND usename <> current_user AND client_addr IS NOT NULL`,
    )
    const others = sessions.filter(({ address }) => !isAdmitted(sources, address)).map(({ pid }) => pid)
    if (others.length > 0)
      await connection.watch.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [others])
    return others.length
  }

  async function endAllSessions(): Promise<void> {
    let emptyChecks = 0
    for (let round = 0; round < ROUNDS; round++) {
      emptyChecks = (await endSessions()) === 0 ? emptyChecks + 1 : 0
      if (emptyChecks === 2) return
      await delay(PAUSE_MS)
    }
    throw new MooringError(EngineCode.unavailable, 'sessions from sources that are not admitted do not end')
  }

  /** Makes the server read pg_hba.conf, and returns when a new connection is subject to it. */
  async function reload(): Promise<void> {
    const [row] = await connection.query<{ since: string }>('SELECT clock_timestamp()::text AS since')
    await connection.query('SELECT pg_reload_conf()')
    for (let round = 0; round < ROUNDS; round++) {
      // The main process, which reads the file, passes its time of loading to each new session.
      const [loaded] = await connection.inside('postgres', (session) =>
        session.query<{ done: boolean }>('SELECT pg_conf_load_time() >= $1::timestamptz AS done', [row?.since]),
      )
      if (loaded?.done) return
      await delay(PAUSE_MS)
    }
    throw new MooringError(EngineCode.unavailable, 'the server does not load its access rules')
  }

  return {
    async admit(given) {
      const sources = engineSources({ sources: given }, target)
      const line = admittedLine(sources)
      if (settled === line) return
      const [file] = await connection.query<{ text: string }>(`SELECT pg_read_file(current_setting('hba_file')) AS text`)
      if (admittedIn(file?.text ?? '') !== line)
        throw new MooringError(EngineCode.unavailable, 'the server does not have its new access rules yet')
      await reload()
      current = sources
      await endAllSessions()
      settled = line
    },
    endExcluded: endSessions,
    async includesOperator() {
      const sources = current
      if (sources === undefined) return true
      const [row] = await connection.query<{ address: string | null }>('SELECT host(inet_client_addr()) AS address')
      return isAdmitted(sources, row?.address ?? '')
    },
  }
}
