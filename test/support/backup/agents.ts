import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { pino } from 'pino'
import { vi } from 'vitest'
import { type Agent, createAgent } from '../../../backup/agent.ts'
import { ORDER_KEY, type Order } from '../../../backup/agent-state.ts'
import { type BackupClock, systemBackupClock } from '../../../backup/clock.ts'
import type { Schedule } from '../../../backup/context.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import { createDirectoryRepository } from '../../../backup/repository/directory.ts'
import type { Repository } from '../../../backup/repository/port.ts'
import { bodyOf } from '../../../backup/repository/small-objects.ts'
import { type ArchivedServer, startFrom } from './archived-server.ts'
import { PATIENCE, PREFIX, QUICK } from './quick.ts'

export { PREFIX }

/** Clock whose date a test moves. The timers keep the real time. */
export interface MovedClock extends BackupClock {
  move(ms: number): void
}

export function movedClock(): MovedClock {
  let moved = 0
  return {
    ...systemBackupClock,
    date: () => Date.now() + moved,
    move(ms) {
      moved += ms
    },
  }
}

/** Repository in a directory of its own. */
export interface TestRepository extends AsyncDisposable {
  readonly directory: string
  readonly repository: Repository
}

export async function testRepository(): Promise<TestRepository> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-repository-'))
  return {
    directory,
    repository: createDirectoryRepository({ directory }),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, maxRetries: 5 }),
  }
}

export interface AgentOptions {
  readonly repository: Repository
  readonly prefix?: string
  readonly schedule?: Partial<Schedule>
  readonly clock?: BackupClock
}

export interface TestAgent extends AsyncDisposable, Agent {
  /** Waits until the database has a restorable window. */
  archiving(): Promise<void>
  /** Waits until the restorable window includes `time`. */
  reaches(time: Date): Promise<void>
}

export function startAgent(server: ArchivedServer, options: AgentOptions): TestAgent {
  const { repository, prefix = PREFIX, schedule, clock = systemBackupClock } = options
  const agent = createAgent({
    ...{ repository, prefix, clock, server: server.files },
    log: pino({ level: 'silent' }),
    schedule: { ...QUICK, ...schedule },
  })
  const within = (condition: () => boolean): Promise<void> =>
    vi.waitFor(
      () => {
        if (!condition()) throw new Error(`not yet: ${JSON.stringify(agent.state())}`)
      },
      { ...PATIENCE, interval: 20 },
    )
  const latest = (): number => Date.parse(agent.state().restoreWindow?.latest ?? new Date(0).toISOString())
  return {
    ...agent,
    archiving: () => within(() => agent.state().restoreWindow !== null),
    reaches: (time) => within(() => latest() >= time.getTime()),
    [Symbol.asyncDispose]: () => agent.close(),
  }
}

export async function giveOrder(repository: Repository, order: Order, prefix = PREFIX): Promise<void> {
  await repository.put(`${prefix}/${ORDER_KEY}`, bodyOf(Buffer.from(JSON.stringify(order))))
}

/** Returns a time that differs by 10 ms from all commits before and after. */
export async function momentOf(client: pg.Client): Promise<Date> {
  await client.query('SELECT pg_sleep(0.01)')
  const { rows } = await client.query<{ at: Date }>('SELECT clock_timestamp() AS at')
  await client.query('SELECT pg_sleep(0.01)')
  return rows[0]?.at ?? new Date(Number.NaN)
}

/**
 * Makes each drill of a server wait for a day, until the table `public.trap` is dropped: the planner calls a function that waits on the server of a
 * drill, which listens on no port.
 */
export async function trapDrills(client: pg.Client): Promise<void> {
  await client.query(`CREATE FUNCTION public.wait(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN IF pg_catalog.inet_server_port() IS NULL THEN PERFORM pg_catalog.pg_sleep(86400); END IF; RETURN 1; END $$`)
  await client.query('CREATE TABLE public.trap (n int)')
  await client.query('CREATE INDEX ON public.trap (n) WHERE public.wait(1) > 0')
}

export interface RestoredOptions {
  readonly repository: Repository
  readonly time: Date
  readonly prefix?: string
}

/** Starts a server on a restore of `server`'s backups. */
export function startRestored(
  server: ArchivedServer,
  { repository, time, prefix = PREFIX }: RestoredOptions,
): Promise<ArchivedServer> {
  const { signal } = new AbortController()
  return startFrom(server.series, (into) => restore({ repository, prefix, time, into, signal }))
}

/** Reads one value. */
export async function valueOf(client: pg.Client, text: string): Promise<unknown> {
  const { rows } = await client.query<[unknown]>({ text, rowMode: 'array' })
  return rows[0]?.[0]
}
