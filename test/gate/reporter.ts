import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { isFull } from '../support/scope.ts'
import { type FailedFile, type Flaky, type Report, TOO_MANY_FILES } from './report.ts'

/** Tag of files whose tests build on each other. */
export const WHOLE_FILE = 'whole-file'

/**
 * Prints the tests that passed only at a second try, which vitest's own reporter hides, and writes a `Report` into the directory that
 * `MOORING_TEST_REPORTS` names. In the gate it stops the run when too many files have failed.
 */
export class GateReporter implements Reporter {
  #vitest: Vitest | undefined
  #began = performance.now()
  readonly #failed = new Set<string>()

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
    this.#began = performance.now()
  }

  async onTestModuleEnd(module: TestModule): Promise<void> {
    if (module.ok()) return
    this.#failed.add(module.id)
    const isGate = reportDirectory() !== undefined && !isFull
    if (isGate && this.#failed.size === TOO_MANY_FILES) await this.#vitest?.cancelCurrentRun('test-failure')
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly { readonly message: string }[]): void {
    const report = reportOf(modules, unhandledErrors, (performance.now() - this.#began) / 1_000)
    for (const { project, file, test, error } of report.flaky)
      process.stdout.write(` FLAKY  |${project}| ${file} > ${test}\n        ${error}\n`)
    const directory = reportDirectory()
    if (directory === undefined) return
    mkdirSync(directory, { recursive: true })
    // `readReports` sorts by the time of the end. The rename keeps it from reading a half-written file.
    const path = join(directory, `${Date.now()}-${randomUUID()}`)
    writeFileSync(path, JSON.stringify(report))
    renameSync(path, `${path}.json`)
  }
}

const reportDirectory = (): string | undefined => process.env.MOORING_TEST_REPORTS

function reportOf(modules: readonly TestModule[], unhandled: readonly { readonly message: string }[], seconds: number): Report {
  const count = (state: 'passed' | 'failed' | 'skipped') =>
    modules.reduce((sum, module) => sum + [...module.children.allTests(state)].length, 0)
  return {
    projects: [...new Set(modules.map(({ project }) => project.name))].toSorted(),
    seconds,
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
    failedFiles: modules.filter((module) => !module.ok()).map(failedFile),
    flaky: modules.flatMap((module) => [...module.children.allTests('passed')].flatMap(flakyTest)),
    unhandled: unhandled.map(({ message }) => message),
  }
}

const firstError = (errors: readonly { readonly message: string }[] | undefined): string =>
  errors?.[0]?.message.split('\n', 1)[0] ?? ''

function failedFile(module: TestModule): FailedFile {
  const failed = [...module.children.allTests('failed')]
  const suites = [module, ...module.children.allSuites()]
  const hooks = suites.flatMap((suite) => suite.errors())
  const isChained = [...module.children.allTests()].some(({ tags }) => tags.includes(WHOLE_FILE))
  return {
    project: module.project.name,
    file: module.relativeModuleId,
    mayRunAgain: isChained || (hooks.length > 0 && failed.length === 0),
    passed: [...module.children.allTests('passed')].length,
    failed: failed.length,
    failures: [
      ...hooks.map((error) => `hook: ${firstError([error])}`),
      ...failed.map((test) => `${test.fullName}: ${firstError(errorsOf(test))}`),
    ],
  }
}

const errorsOf = (test: TestCase) => test.result().errors

function flakyTest(test: TestCase): readonly Flaky[] {
  if (test.diagnostic()?.flaky !== true) return []
  return [
    {
      project: test.project.name,
      file: test.module.relativeModuleId,
      test: test.fullName,
      error: firstError(errorsOf(test)),
    },
  ]
}
