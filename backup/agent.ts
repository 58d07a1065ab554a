import type { Logger } from 'pino'
import { type AgentState, Order, ORDER_KEY, ProblemReason, STATE_KEY } from './agent-state.ts'
import type { BackupClock } from './clock.ts'
import { type Context, listEveryMs, SCHEDULE, type Schedule } from './context.ts'
import { createBackupJob } from './backup-job.ts'
import { createDrillJob } from './drill-job.ts'
import { createRetentionJob } from './retention-job.ts'
import { createLoop, type Loop } from './loop.ts'
import { createArchiving } from './postgresql/archiving/archiving.ts'
import { createCatalog } from './postgresql/catalog/catalog.ts'
import { loadState, quietOf, relist } from './postgresql/catalog/load.ts'
import { readText } from './postgresql/catalog/read-object.ts'
import type { Quiet } from './postgresql/catalog/restorable.ts'
import type { PostgresqlFiles } from './postgresql/server.ts'
import { createProblems, problemOf } from './problems.ts'
import { memoryFrom, remember, stateOf } from './report.ts'
import type { Repository } from './repository/port.ts'
import { bodyOf } from './repository/small-objects.ts'

export interface AgentDeps {
  readonly repository: Repository
  /** Uid of the database, the first part of all keys. */
  readonly prefix: string
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly log: Logger
  /** Overrides of the default schedule. */
  readonly schedule?: Partial<Schedule> | undefined
}

/** Archives one server, from the agent's creation on. Its methods never throw: a failure is reported in the state and retried. */
export interface Agent {
  state(): AgentState
  /** Reads the order and polls the spool now. */
  wake(): void
  /** Stops the current work within a few seconds. The next agent continues it. */
  close(): Promise<void>
}

/** Index in `loops` of the loop that writes the state. */
const REPORTING = 0

export function createAgent(deps: AgentDeps): Agent {
  const { repository, prefix, server, clock, log } = deps
  const schedule = { ...SCHEDULE, ...deps.schedule }
  const controller = new AbortController()
  const { signal } = controller
  const reading = { repository, prefix, signal }
  const catalog = createCatalog()
  const memory = memoryFrom(undefined)
  let order: Order | undefined
  let listedAt: number | undefined
  /** State that was last written to the repository. */
  let written: { readonly text: string; readonly at: number; readonly quiet: Quiet | undefined } | undefined
  const loops: Loop[] = []

  const changed = (): void => loops[REPORTING]?.poke()
  const problems = createProblems((work, problem) => {
    if (problem) log.warn({ work, reason: problem.reason, problem: problem.message }, 'backup problem')
    else log.info({ work }, 'backup problem ended')
    changed()
  })
  const isLoaded = (): boolean => listedAt !== undefined
  const archiving = createArchiving({
    repository,
    prefix,
    server,
    clock,
    signal,
    problems,
    catalog: () => (isLoaded() ? catalog : undefined),
  })
  const context: Context = {
    repository,
    prefix,
    server,
    clock,
    log,
    schedule,
    signal,
    catalog,
    memory,
    problems,
    archiving,
    changed,
    order: () => order,
  }
  const [backUp, expire, drill] = [createBackupJob(context), createRetentionJob(context), createDrillJob(context)]
  let expiredAt: number | undefined

  const stateWith = (quiet: Quiet | undefined): AgentState =>
    stateOf({ memory, catalog, quiet, problem: problems.worst(), now: clock.date() })

  /** Runs a step of a loop. A failure is a problem until the step succeeds. @returns whether it succeeded */
  async function step(work: 'list' | 'order' | 'report', run: () => Promise<void>): Promise<boolean> {
    try {
      await run()
      problems.succeed(work)
      return true
    } catch (error) {
      if (!signal.aborted) problems.fail(work, problemOf(error, ProblemReason.unavailable))
      return false
    }
  }

  async function list(): Promise<void> {
    if (listedAt === undefined) {
      const earlier = await loadState(reading)
      remember(memory, earlier)
      archiving.resume(quietOf(earlier))
    }
    await relist(reading, catalog)
    listedAt = clock.date()
    changed()
  }

  async function readOrder(): Promise<void> {
    const text = await readText(reading, ORDER_KEY)
    if (text !== undefined) order = Order.parse(JSON.parse(text))
  }

  async function report(): Promise<void> {
    if (!isLoaded()) return
    const quiet = archiving.quiet()
    const { at, ...rest } = stateWith(quiet)
    const text = JSON.stringify(rest)
    if (written?.text === text && clock.date() - written.at < schedule.stateMs) return
    await repository.put(`${prefix}/${STATE_KEY}`, bodyOf(Buffer.from(JSON.stringify({ at, ...rest }))), signal)
    written = { text, at: clock.date(), quiet }
  }

  const loop = (everyMs: number, run: () => Promise<void>): Loop => createLoop({ clock, everyMs, signal, run })
  const shipping = loop(schedule.shipMs, async () => {
    if (isLoaded() || (await step('list', list))) await archiving.ship()
  })
  const marking = loop(schedule.markMs, () => archiving.mark())
  const working = loop(schedule.orderMs, async () => {
    await step('order', readOrder)
    if (listedAt === undefined) return
    if (clock.date() - listedAt >= listEveryMs(catalog.keys().length, schedule)) await step('list', list)
    const isNew = await backUp()
    if (!isNew && expiredAt !== undefined && clock.date() - expiredAt < schedule.expireMs) return
    await expire()
    expiredAt = clock.date()
  })
  const reporting = loop(Math.min(schedule.shipMs, schedule.stateMs), async () => {
    await step('report', report)
  })
  const drilling = loop(schedule.orderMs, async () => {
    if (isLoaded()) await drill()
  })
  loops.push(reporting, shipping, marking, working, drilling)

  return {
    // A restore knows only the quiet time that is in the repository.
    state: () => stateWith(written?.quiet),
    wake() {
      for (const each of [shipping, working, drilling]) each.poke()
    },
    async close() {
      controller.abort()
      await Promise.all(loops.map(({ ended }) => ended))
      await archiving.close()
    },
  }
}
