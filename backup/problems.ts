import { hasCode, MooringError } from '../shared/errors.ts'
import { type Problem, ProblemReason } from './agent-state.ts'
import { ARCHIVE_CORRUPT } from './postgresql/catalog/read-object.ts'
import { RepositoryCode } from './repository/port.ts'

/** Kinds of work that may fail. A problem ends when work of the same kind succeeds. */
export const WORK = ['list', 'archive', 'spool', 'report', 'order', 'mark', 'backup', 'drill', 'retention'] as const
export type Work = (typeof WORK)[number]

export interface Problems {
  fail(work: Work, problem: Problem): void
  succeed(work: Work): void
  /** Returns the most severe problem; null when there is none. */
  worst(): Problem | null
  of(work: Work): Problem | undefined
}

const SEVERITY = [
  ProblemReason.full,
  ProblemReason.unavailable,
  ProblemReason.corrupt,
  ProblemReason.serverUnreachable,
  ProblemReason.backupFailed,
]

/** @param onChange called when the set of problems has changed */
export function createProblems(onChange: (work: Work, problem: Problem | undefined) => void): Problems {
  const problems = new Map<Work, Problem>()
  return {
    fail(work, problem) {
      const before = problems.get(work)
      problems.set(work, problem)
      if (before?.reason !== problem.reason || before.message !== problem.message) onChange(work, problem)
    },
    succeed(work) {
      if (problems.delete(work)) onChange(work, undefined)
    },
    worst: () => [...problems.values()].sort((a, b) => SEVERITY.indexOf(a.reason) - SEVERITY.indexOf(b.reason))[0] ?? null,
    of: (work) => problems.get(work),
  }
}

const MAX_MESSAGE = 1024

/** Describes an error. Messages of MooringErrors and of the server's own errors have no secrets. */
export function problemOf(error: unknown, otherwise: Problem['reason']): Problem {
  return { reason: reasonOf(error) ?? otherwise, message: messageOf(error) }
}

export function messageOf(error: unknown): string {
  const text = error instanceof Error && error.message !== '' ? error.message : 'unknown error'
  return text.slice(0, MAX_MESSAGE)
}

function reasonOf(error: unknown): Problem['reason'] | undefined {
  if (!(error instanceof MooringError)) return undefined
  if (hasCode(error, RepositoryCode.unavailable)) return ProblemReason.unavailable
  if (hasCode(error, RepositoryCode.full)) return ProblemReason.full
  return hasCode(error, ARCHIVE_CORRUPT) ? ProblemReason.corrupt : undefined
}
