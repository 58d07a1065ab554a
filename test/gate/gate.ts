import { buildKubernetes } from '../cluster/setup/bed.ts'
import { printOutcome } from './outcome.ts'
import { filesToRunAgain, sumOf, type Total, TOO_MANY_FILES, withSecondRun } from './report.ts'
import { keepStaticCaches, restoreStaticCaches } from './static-cache.ts'
import { runFileAgain, runStep, type StepResult } from './steps.ts'

/** The gate: what continuous integration asks of each change (CONTRIBUTING.md, "The gate"). */
const STEPS = ['test', 'test:faults', 'test:control-plane', 'test:smoke']

const steps: StepResult[] = []

// First and alone: no timed test runs beside the compiler.
await buildKubernetes()
await restoreStaticCaches()
for (const script of STEPS) {
  const step = await runStep(`npm run ${script}`, ['npm', 'run', script])
  steps.push(step)
  if (script === 'test') await keepStaticCaches()
  if (isHopeless(step)) break
}
printOutcome(steps, await secondRuns(totalOf(steps)))

/** Whether the other steps would only repeat what is known: failed static checks or unit tests, or many failed files. */
function isHopeless({ exitCode, reports }: StepResult): boolean {
  const unit = reports.find(({ projects }) => projects.includes('unit'))
  const lacksBase = steps.length === 1 && exitCode !== 0 && (!unit || unit.failedFiles.length > 0)
  return lacksBase || totalOf(steps).failedFiles.length >= TOO_MANY_FILES
}

/** Runs failed files once more where that may mend them. */
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
