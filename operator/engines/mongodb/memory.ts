import { type Suspension, SuspensionCause } from '../engine.ts'
import type { Connection } from './connection.ts'
import type { Operation } from './sessions.ts'
import { surveyOperations } from './survey.ts'
import { suspendFor, tenantOf } from './users.ts'

/** Memory in MiB above which a server is watched closely. Its cache of 256 MiB, full, and 300 connections take half of it (measured). */
const HIGH_MIB = 768
/** Interval of the measurements, in ms: an expression doubles the memory in less than a second. */
const INTERVAL_MS = 250
/** Time after a check of the watchdog for which the measurements go on; it checks servers with tenants every 5 s. */
const ARMED_MS = 15_000
/** Minimum running time of an operation that counts, in ms: a short one used up no memory. */
const MIN_RUNNING_MS = 200
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
 * memory is high, the tenants whose operations run are noted in the server; the next process finds the note and suspends them before they can
 * repeat it. A neighbour whose operation runs at the same time is suspended, too: the server does not show whose memory it is.
 */
export function createMemoryWatch({ watch }: Connection): MemoryWatch {
  // Not kept: a client whose first connection failed is replaced.
  const notes = () => watch.db('admin').collection<Note>('mooring.notes')
  let suspended: Suspension[] = []
  let isNoted = false
  let uptimeMs = 0
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
    await forget()
  }

  async function forget(): Promise<void> {
    await notes().deleteOne({ _id: 'memory' })
    isNoted = false
  }

  async function measure(): Promise<void> {
    const { mem, uptimeMillis } = (await watch.command('admin', MEMORY)) as {
      readonly mem: { readonly resident: number }
      readonly uptimeMillis: bigint | number
    }
    const isNew = processId === undefined || Number(uptimeMillis) < uptimeMs
    uptimeMs = Number(uptimeMillis)
    if (isNew) await settle()
    if (mem.resident < HIGH_MIB) {
      if (isNoted) await forget()
      return
    }
    const { operations, hidden } = await surveyOperations(watch, {})
    const names = [...new Set([...operations.filter(isLong).flatMap((one) => tenantOf(one) ?? []), ...hidden])]
    if (names.length === 0) return
    const note = { process: processId ?? '', names, at: new Date() }
    // The server answers when the note is in its journal.
    await notes().replaceOne({ _id: 'memory' }, note, { upsert: true, writeConcern: { w: 1, journal: true } })
    isNoted = true
  }

  function next(): void {
    timer = setTimeout(() => {
      // The server may be down; the next measurement finds it again.
      void measure()
        .catch(() => undefined)
        .finally(() => {
          if (timer !== undefined && performance.now() < armedUntil) next()
          else timer = undefined
        })
    }, INTERVAL_MS)
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

/** Whether an operation has run for a while. A change stream that waits runs, too. */
const isLong = ({ microsecs_running = 0 }: Operation): boolean => Number(microsecs_running) / 1000 > MIN_RUNNING_MS

/** Command for the memory of the server, without the sections that take time. */
const MEMORY = {
  ...{
    serverStatus: 1,
    mem: 1,
    metrics: 0,
    locks: 0,
    wiredTiger: 0,
    repl: 0,
    tcmalloc: 0,
    opLatencies: 0,
    opWriteConcernCounters: 0,
  },
  ...{ transactions: 0, logicalSessionRecordCache: 0, globalLock: 0, network: 0, security: 0, storageEngine: 0, flowControl: 0 },
}
