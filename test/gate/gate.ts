import { buildKubernetes } from '../cluster/setup/bed.ts'
import { printOutcome } from './outcome.ts'
import { filesToRunAgain, sumOf, type Total, TOO_MANY_FILES, withSecondRun } from './report.ts'
import { keepStaticCaches, restoreStaticCaches } from './static-cache.ts'
import { runFileAgain, runStep, type StepResult } from './steps.ts'

/** npm scripts that the gate runs, in this order (CONTRIBUTING.md, "The gate"). */
const STEPS = ['test', 'test:faults', 'test:control-plane', 'test:smoke']

const steps: StepResult[] = []

// Builds Kubernetes before the first step, because a compiler that runs beside tests slows them.
await buildKubernetes()
await restoreStaticCaches()
for (const script of STEPS) {
  const step = await runStep(`npm run ${script}`, ['npm', 'run', script])
  steps.push(step)
  if (script === 'test') await keepStaticCaches()
  if (skipsRest(step)) break
}
printOutcome(steps, await secondRuns(totalOf(steps)), STEPS.slice(steps.length))

/** Whether to skip the remaining steps: static checks or unit tests failed in the first step, or {@link TOO_MANY_FILES} files failed so far. */
function skipsRest({ exitCode, reports }: StepResult): boolean {
  const unit = reports.find(({ projects }) => projects.includes('unit'))
  const isBaseBroken = steps.length === 1 && exitCode !== 0 && (!unit || unit.failedFiles.length > 0)
  return isBaseBroken || totalOf(steps).failedFiles.length >= TOO_MANY_FILES
}

/** Runs failed files a second time where report.ts allows it. */
async function secondRuns(first: Total): Promise<Total> {
  let total = first
  for (const file of filesToRunAgain(first)) {
    process.stdout.write(`\nsecond run of a whole file: ${file.file}\n`)
    const again = await runFileAgain(file)
    if (again) total = withSecondRun(total, file, again)
  }
  return total
}

function totalOf(done: readonly StepResult[]): Total {
  return sumOf(done.flatMap(({ reports }) => reports))
}
