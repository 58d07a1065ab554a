import { z } from 'zod'

/** Test file that did not pass. */
const FailedFile = z.object({
  project: z.string(),
  /** Path relative to the repository. */
  file: z.string(),
  /** Whether the file is eligible for a second run: a hook failed and no test did, or its tests build on each other (tag `whole-file`). */
  mayRunAgain: z.boolean(),
  passed: z.int(),
  failed: z.int(),
  /** Names of the failed tests, each with its error; failed hooks too. */
  failures: z.array(z.string()),
})
export type FailedFile = z.output<typeof FailedFile>

/** Test or whole file that passed at its second try. The first error may show a defect. */
const Flaky = z.object({ project: z.string(), file: z.string(), test: z.string(), error: z.string() })
export type Flaky = z.output<typeof Flaky>

/** Result of one run of vitest, as reporter.ts writes it. */
export const Report = z.object({
  projects: z.array(z.string()),
  seconds: z.number(),
  passed: z.int(),
  failed: z.int(),
  skipped: z.int(),
  failedFiles: z.array(FailedFile),
  flaky: z.array(Flaky),
  /** Errors outside of tests and hooks, such as unhandled rejections. */
  unhandled: z.array(z.string()),
})
export type Report = z.output<typeof Report>

/** Number of failed files at which the gate stops early and runs no file a second time: so many failures have a cause that a second run does not remove. */
export const TOO_MANY_FILES = 6

/** Sum of several reports. */
export type Total = Pick<Report, 'passed' | 'failed' | 'failedFiles' | 'flaky' | 'unhandled'>

export function sumOf(reports: readonly Report[]): Total {
  return {
    passed: reports.reduce((sum, { passed }) => sum + passed, 0),
    failed: reports.reduce((sum, { failed }) => sum + failed, 0),
    failedFiles: reports.flatMap(({ failedFiles }) => failedFiles),
    flaky: reports.flatMap(({ flaky }) => flaky),
    unhandled: reports.flatMap(({ unhandled }) => unhandled),
  }
}

/**
 * Returns the files to run a second time: all failed files, or none when one of them is not eligible, when there are {@link TOO_MANY_FILES} or
 * more, or when an error occurred outside of tests.
 */
export function filesToRunAgain({ failedFiles, unhandled }: Total): readonly FailedFile[] {
  const isWorthIt = failedFiles.length < TOO_MANY_FILES && unhandled.length === 0
  return isWorthIt && failedFiles.every(({ mayRunAgain }) => mayRunAgain) ? failedFiles : []
}

/**
 * Returns the total after the second run of a failed file. When the second run passed, its counts replace those of the first, and the file is
 * flaky, with the first failure of its first run. Otherwise the total is unchanged.
 */
export function withSecondRun(total: Total, first: FailedFile, again: Report): Total {
  const isMended = again.failed === 0 && again.failedFiles.length === 0 && again.unhandled.length === 0 && again.passed > 0
  if (!isMended) return total
  const { project, file, failures } = first
  return {
    ...total,
    passed: total.passed - first.passed + again.passed,
    failed: total.failed - first.failed,
    failedFiles: total.failedFiles.filter((failed) => failed !== first),
    flaky: [...total.flaky, { project, file, test: 'whole file', error: failures[0] ?? '' }],
  }
}

/** Largest share of tests that may pass only at a second try. */
const FLAKY_SHARE = 1 / 1_000

/** Returns the reasons why a run did not pass; none: it passed. */
export function reasonsToFail({ passed, failed, failedFiles, flaky, unhandled }: Total): readonly string[] {
  const reasons = []
  if (failed > 0 || failedFiles.length > 0) reasons.push(`${failed} tests in ${failedFiles.length} files failed`)
  if (unhandled.length > 0) reasons.push(`${unhandled.length} errors outside of tests`)
  if (passed === 0) reasons.push('no test passed')
  if (flaky.length > passed * FLAKY_SHARE) reasons.push(`${flaky.length} passed only at a second try, more than 1 in 1,000 tests`)
  return reasons
}
