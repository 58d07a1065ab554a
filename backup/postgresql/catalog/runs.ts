import type { LogId } from './keys.ts'
import type { Mark, Run } from './restorable.ts'

/** Segments by log, kept as runs: in 35 days a database may have 150,000 segments. */
export interface Runs {
  /** Adds a segment. A segment that was shipped twice, as its agent was killed in between, has the later mark. */
  add(log: LogId, segment: number, markedAt: number | undefined): void
  all(): ReadonlyMap<LogId, readonly Run[]>
}

interface Log {
  readonly segments: Map<number, number | undefined>
  runs: GrowingRun[] | undefined
}

interface GrowingRun {
  readonly first: number
  last: number
  readonly marks: Mark[]
  latest: Mark | undefined
}

export function createRuns(): Runs {
  const logs = new Map<LogId, Log>()
  return {
    add(id, segment, markedAt) {
      const log = logs.get(id) ?? { segments: new Map<number, number | undefined>(), runs: [] }
      logs.set(id, log)
      const isNew = !log.segments.has(segment)
      const earlier = log.segments.get(segment)
      log.segments.set(segment, markedAt === undefined ? earlier : Math.max(markedAt, earlier ?? 0))
      // In the order of the log, the runs grow at their end.
      const end = log.runs?.at(-1)?.last ?? -1
      if (isNew && segment > end) log.runs = log.runs && extended(log.runs, segment, markedAt)
      else log.runs = undefined
    },
    all() {
      return new Map([...logs].map(([id, log]) => [id, (log.runs ??= runsOf(log.segments))]))
    },
  }
}

function runsOf(segments: Log['segments']): GrowingRun[] {
  const numbers = [...segments.keys()].sort((a, b) => a - b)
  return numbers.reduce<GrowingRun[]>((runs, number) => extended(runs, number, segments.get(number)), [])
}

/** Adds the next segment to runs, which it changes. */
function extended(runs: GrowingRun[], segment: number, at: number | undefined): GrowingRun[] {
  let run = runs.at(-1)
  if (run?.last === segment - 1) run.last = segment
  else runs.push((run = { first: segment, last: segment, marks: [], latest: undefined }))
  if (at === undefined) return runs
  const mark = { segment, at }
  run.marks.push(mark)
  if (!run.latest || at >= run.latest.at) run.latest = mark
  return runs
}
