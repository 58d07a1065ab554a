import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FailedFile, Report } from './report.ts'

/** Result of one command. */
export interface StepResult {
  readonly name: string
  readonly seconds: number
  readonly exitCode: number
  /** Reports of the runs of vitest that the command started, in order of their ends. */
  readonly reports: readonly Report[]
}

/** Runs a command that inherits stdout and stderr, and collects the reports of its test runs. */
export async function runStep(
  name: string,
  command: readonly [string, ...(readonly string[])],
  env: NodeJS.Dict<string> = {},
): Promise<StepResult> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-reports-'))
  const [file, ...args] = command
  const began = performance.now()
  try {
    const child = spawn(file, args, {
      env: { ...process.env, ...env, MOORING_TEST_REPORTS: directory },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    await once(child, 'close')
    const seconds = (performance.now() - began) / 1_000
    return { name, seconds, exitCode: child.exitCode ?? 1, reports: await readReports(directory) }
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function readReports(directory: string): Promise<readonly Report[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.json')).toSorted()
  return Promise.all(files.map(async (name) => Report.parse(JSON.parse(await readFile(join(directory, name), 'utf8')))))
}

/** Runs one test file once more, as a whole and alone. Returns undefined when the run wrote no report. */
export async function runFileAgain({ project, file }: FailedFile): Promise<Report | undefined> {
  const command = ['npx', 'vitest', 'run', '--project', project, '--retry=0', '--maxWorkers=1', file] as const
  const { reports } = await runStep(file, command)
  return reports[0]
}

function minutes(seconds: number): string {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

/**
 * Returns a table with durations in minutes:seconds: for each step a line with its exit status, a line for its time outside of test runs, and a
 * line for each test run, such as `edge, faults  2:15  745 passed, 0 failed, 1 flaky`.
 */
export function tableOf(steps: readonly StepResult[]): string {
  const rows = steps.flatMap(({ name, seconds, exitCode, reports }) => {
    const rest = seconds - reports.reduce((sum, report) => sum + report.seconds, 0)
    const inside = reports.map((report) => [
      `  ${report.projects.join(', ')}`,
      minutes(report.seconds),
      `${report.passed} passed, ${report.failed} failed, ${report.flaky.length} flaky`,
    ])
    const beside = reports.length === 0 ? [] : [['  checks and set-up', minutes(rest), '']]
    return [[name, minutes(seconds), exitCode === 0 ? 'ok' : `exit code ${exitCode}`], ...beside, ...inside]
  })
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map(([name = '', time = '', result = '']) =>
      `${name.padEnd(widths[0] ?? 0)}  ${time.padStart(widths[1] ?? 0)}  ${result}`.trimEnd(),
    )
    .join('\n')
}
