import { reasonsToFail, sumOf, type Total } from './report.ts'
import { type StepResult, tableOf } from './steps.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/**
 * Prints the steps with durations, the tests that passed only at a second try, the failures, and last `N passed, N failed`. Sets the exit
 * code of this process.
 * @param total sum of the steps' reports, after second runs of whole files
 * @param skipped names of the steps that did not run
 */
export function printOutcome(steps: readonly StepResult[], total: Total, skipped: readonly string[] = []): void {
  say(`\n${tableOf(steps)}\n`)
  say(`flaky: ${total.flaky.length}`)
  for (const { project, file, test, error } of total.flaky) say(`  |${project}| ${file} > ${test}\n      ${error}`)
  for (const { project, file, failures } of total.failedFiles) {
    say(`failed: |${project}| ${file}`)
    for (const failure of failures) say(`  ${failure}`)
  }
  for (const error of total.unhandled) say(`error outside of tests: ${error}`)
  const reasons = [...reasonsToFail(total), ...steps.flatMap(unexplained), ...skipped.map((name) => `${name} did not run`)]
  for (const reason of reasons) say(`failed: ${reason}`)
  process.exitCode = reasons.length === 0 ? 0 : 1
  say(`${total.passed} passed, ${total.failed} failed`)
}

/** Returns a reason when a command failed although none of its tests did: a static check failed, or a server did not stop. */
function unexplained({ name, exitCode, reports }: StepResult): readonly string[] {
  const { failedFiles, unhandled } = sumOf(reports)
  return exitCode !== 0 && failedFiles.length + unhandled.length === 0 ? [`${name}: exit code ${exitCode}`] : []
}
