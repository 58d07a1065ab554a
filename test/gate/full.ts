import { rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { printOutcome } from './outcome.ts'
import { sumOf } from './report.ts'
import { runStep, type StepResult } from './steps.ts'

/**
 * `npm run test:full [-- --from PART]`: all tests, with the long ones, all series of PostgreSQL and random seeds, part by part. Goes on
 * after a failure, and ends with a table.
 */
const vitest = (...projects: readonly string[]) =>
  ['npx', 'vitest', 'run', ...projects.flatMap((name) => ['--project', name])] as const
const PARTS = new Map<string, readonly [string, ...(readonly string[])]>([
  ['static', ['npm', 'run', 'static'] as const],
  ...['unit', 'servers', 'behaviour', 'engines', 'families', 'dashboard', 'embedded', 'edge', 'faults', 'control-plane'].map(
    (name) => [name, vitest(name)] as const,
  ),
  ['cluster', vitest('cluster', 'cluster-faults')],
])
const NAMES = [...PARTS.keys()]

const { from = 'static' } = parseArgs({ options: { from: { type: 'string' } } }).values
if (!PARTS.has(from)) throw new Error(`--from must be one of ${NAMES.join(', ')}, not ${from}`)

// The caches of lint and format ignore what changed in other files.
await rm('node_modules/.cache/eslint', { force: true })

const steps: StepResult[] = []
for (const [name, command] of [...PARTS].slice(NAMES.indexOf(from))) {
  steps.push(await runStep(name, command, { MOORING_TEST_SCOPE: 'full' }))
}
printOutcome(steps, sumOf(steps.flatMap(({ reports }) => reports)))
