import { type Suspension, SuspensionCause } from '../engine.ts'
import type { Connection } from './connection.ts'
import { surveyOperations } from './survey.ts'
import { suspendFor, tenantOf } from './users.ts'

/** Memory in MiB above which a server is watched closely. Its cache of 256 MiB, full, and 300 connections take half of it (measured). */
const HIGH_MIB = 768
/** Minimum growth in MiB over the last {@link MEASUREMENTS} for a note: a server keeps memory that it has used. */
const GROWTH_MIB = 64
const MEASUREMENTS = 8
/** Interval of the measurements, in ms, usually and above half of {@link HIGH_MIB}: an expression doubles the memory within a second. */
const INTERVAL_MS = { usual: 500, close: 250 }
/** Time after a check of the watchdog for which the measurements go on; it checks servers with tenants every 5 s. */
const ARMED_MS = 15_000
/** Minimum running time of an operation that counts, in ms: a short one used up no memory. */
const MIN_RUNNING_MS = 200
/** Difference in ms of two computed start times above which they are those of two processes. */
const CLOCK_MS = 500
/** Time for which a tenant is suspended that ended the server, in ms; as long as the minimum time between two forced restarts. */
const SUSPENDED_MS = 600_000

/** What is written while the memory is high. It outlives the server, and the operator. */
interface Note {
  readonly _id: 'memory'
  /** Id of the server's process. */
  readonly process: string
  /** Tenants whose operations ran. */
  readonly names: readonly string[]
  readonly at: Date
}

/** Watch over the memory of one server. Disposing ends it. */
export interface MemoryWatch extends Disposable {
  /** Suspends the tenants whose operations ran when a former process of the server had much memory just before it ended. */
  settle(): Promise<void>
  /** Goes on measuring. @returns the tenants that were suspended since the last call */
  arm(): readonly Suspension[]
}

/**
 * Creates the watch. Some expressions build values of any size, which no setting bounds and no kill interrupts: they end the server. While its
 * memory is high and grows, the tenants whose operations run are noted in the server; the next process finds the note and suspends them before they can
 * repeat it. A neighbour whose operation runs at the same time is suspended, too: the server does not show whose memory it is.
 */
export function createMemoryWatch({ watch }: Connection): MemoryWatch {
  // Not kept: a client whose first connection failed is replaced.
  const notes = () => watch.db('admin').collection<Note>('mooring.notes')
  let suspended: Suspension[] = []
  let isNoted = false
  /** Start of the process by the server's clock, in ms since the epoch. */
  let startedMs = 0
  /** Memory at the last measurements, in MiB. */
  let recent: readonly number[] = []
  let processId: string | undefined
  let armedUntil = 0
  let timer: NodeJS.Timeout | undefined

  async function readProcess(): Promise<string> {
    const { topologyVersion } = (await watch.command('admin', { hello: 1 })) as { topologyVersion: { processId: unknown } }
    return String(topologyVersion.processId)
  }

  async function settle(): Promise<void> {
    processId = await readProcess()
    const note = await notes().findOne({ _id: 'memory' })
    isNoted = note !== null
    if (!note || note.process === processId) return
    const now = Date.now()
    if (now - note.at.getTime() < SUSPENDED_MS) {
      for (const name of note.names) {
        await suspendFor(watch, name, SUSPENDED_MS)
        suspended.push({ name, cause: SuspensionCause.memory })
      }
    }
    await notes().deleteOne({ _id: 'memory' })
    isNoted = false
  }

  async function forget(): Promise<void> {
    // The note of a former process stays until that is settled.
    await notes().deleteOne({ _id: 'memory', ...(processId !== undefined && { process: processId }) })
    isNoted = false
  }

  /** Returns the tenants whose operations have run for a while. A change stream that waits runs, too. */
  async function listWorking(): Promise<readonly string[]> {
    const { operations, hidden } = await surveyOperations(watch, {})
    const long = operations.filter(({ microsecs_running = 0 }) => Number(microsecs_running) / 1_000 > MIN_RUNNING_MS)
    return [...new Set([...long.flatMap((operation) => tenantOf(operation) ?? []), ...hidden])]
  }

  async function measure(): Promise<void> {
    const { mem, uptimeMillis, localTime } = (await watch.command('admin', MEMORY)) as {
      readonly mem: { readonly resident: number }
      readonly uptimeMillis: bigint | number
      readonly localTime: Date
    }
    const before = startedMs
    startedMs = localTime.getTime() - Number(uptimeMillis)
    const isNew = processId === undefined || Math.abs(startedMs - before) > CLOCK_MS
    if (isNew) {
      recent = []
      await settle()
    }
    recent = [...recent, mem.resident].slice(-MEASUREMENTS)
    const isGrowing = mem.resident > HIGH_MIB && mem.resident - Math.min(...recent) > GROWTH_MIB
    const names = isGrowing ? await listWorking() : []
    if (names.length === 0) {
      if (isNoted) await forget()
      return
    }
    const note = { process: processId ?? '', names, at: new Date() }
    // The server answers when the note is in its journal.
    await notes().replaceOne({ _id: 'memory' }, note, { upsert: true, writeConcern: { w: 1, journal: true } })
    isNoted = true
  }

  const intervalMs = (): number => ((recent.at(-1) ?? 0) > HIGH_MIB / 2 ? INTERVAL_MS.close : INTERVAL_MS.usual)

  function next(): void {
    timer = setTimeout(() => {
      // The server may be down; the next measurement finds it again.
      void measure()
        .catch(() => undefined)
        .finally(() => {
          if (timer !== undefined && performance.now() < armedUntil) next()
          else timer = undefined
        })
    }, intervalMs())
    timer.unref()
  }

  return {
    settle,
    arm() {
      armedUntil = performance.now() + ARMED_MS
      if (timer === undefined) next()
      const found = suspended
      suspended = []
      return found
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      timer = undefined
      armedUntil = 0
    },
  }
}

/** Command for the memory of the server, a part of the section `metrics`, without other sections that take time. */
const MEMORY = {
  serverStatus: 1,
  locks: 0,
  wiredTiger: 0,
  repl: 0,
  tcmalloc: 0,
  opLatencies: 0,
  opWriteConcernCounters: 0,
  transactions: 0,
  logicalSessionRecordCache: 0,
  globalLock: 0,
  network: 0,
  security: 0,
  storageEngine: 0,
  flowControl: 0,
}
