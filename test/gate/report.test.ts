import { describe, expect, test } from 'vitest'
import { type FailedFile, filesToRunAgain, reasonsToFail, type Report, sumOf, type Total, withSecondRun } from './report.ts'

const failedFile = (overrides: Partial<FailedFile> = {}): FailedFile => ({
  ...{ project: 'edge', file: 'test/edge/a.test.ts', mayRunAgain: true, passed: 3, failed: 1, failures: ['a test: too late'] },
  ...overrides,
})
const report = (overrides: Partial<Report> = {}): Report => ({
  ...{ projects: ['edge'], seconds: 1, passed: 2_000, failed: 0, skipped: 0, failedFiles: [], flaky: [], unhandled: [] },
  ...overrides,
})
const flaky = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ project: 'edge', file: 'a', test: `test ${index}`, error: 'too late' }))
const total = (overrides: Partial<Report> = {}): Total => sumOf([report(overrides)])

test('sumOf adds the counts of all runs', () => {
  const sum = sumOf([report({ passed: 1, flaky: flaky(1) }), report({ passed: 2, failed: 1, failedFiles: [failedFile()] })])
  expect(sum).toMatchObject({ passed: 3, failed: 1, failedFiles: [failedFile()], flaky: flaky(1) })
})

describe('filesToRunAgain', () => {
  const five = Array.from({ length: 5 }, () => failedFile())
  test.each<{ what: string; failedFiles: FailedFile[]; unhandled?: string[]; count: number }>([
    { what: 'returns no file when none failed', failedFiles: [], count: 0 },
    { what: 'returns five files whose hooks failed', failedFiles: five, count: 5 },
    { what: 'returns none of six files', failedFiles: [...five, failedFile()], count: 0 },
    {
      what: 'returns none beside a file without a second try',
      failedFiles: [failedFile(), failedFile({ mayRunAgain: false })],
      count: 0,
    },
    { what: 'returns none beside an error outside of tests', failedFiles: five, unhandled: ['ECONNRESET'], count: 0 },
  ])('$what', ({ failedFiles, unhandled = [], count }) => {
    expect(filesToRunAgain(total({ failedFiles, unhandled }))).toHaveLength(count)
  })
})

describe('withSecondRun', () => {
  const first = failedFile()
  const before = total({ failed: 1, failedFiles: [first] })

  test('replaces the counts of a file that passed, and reports its first failure', () => {
    const after = withSecondRun(before, first, report({ passed: 4 }))
    expect(after).toMatchObject({ passed: 2_001, failed: 0, failedFiles: [] })
    expect(after.flaky).toEqual([{ project: 'edge', file: first.file, test: 'whole file', error: 'a test: too late' }])
    expect(reasonsToFail(after)).toEqual([])
  })

  test.each([
    { what: 'failed again', again: report({ passed: 3, failed: 1, failedFiles: [first] }) },
    { what: 'failed in a hook', again: report({ passed: 3, failedFiles: [first] }) },
    { what: 'ran no test', again: report({ passed: 0 }) },
    { what: 'had an error outside of tests', again: report({ unhandled: ['ECONNRESET'] }) },
  ])('changes nothing when the file $what', ({ again }) => {
    expect(withSecondRun(before, first, again)).toEqual(before)
  })
})

describe('reasonsToFail', () => {
  test.each([
    { what: 'none: two second tries in 2,000 tests', result: total({ flaky: flaky(2) }), reasons: [] },
    {
      what: 'a third one',
      result: total({ flaky: flaky(3) }),
      reasons: ['3 passed only at a second try, more than 1 in 1,000 tests'],
    },
    { what: 'a failed test', result: total({ failed: 1, failedFiles: [failedFile()] }), reasons: ['1 tests in 1 files failed'] },
    { what: 'a failed hook', result: total({ failedFiles: [failedFile()] }), reasons: ['0 tests in 1 files failed'] },
    { what: 'an unhandled rejection', result: total({ unhandled: ['no'] }), reasons: ['1 errors outside of tests'] },
    { what: 'no test', result: total({ passed: 0 }), reasons: ['no test passed'] },
  ])('$what', ({ result, reasons }) => {
    expect(reasonsToFail(result)).toEqual(reasons)
  })
})
