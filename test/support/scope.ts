/** Whether everything runs: long tests, all series of PostgreSQL, random seeds. Set by `MOORING_TEST_SCOPE=full` (`npm run test:full`). */
export const isFull = process.env.MOORING_TEST_SCOPE === 'full'

/** Cases of a table of tests that the gate leaves out, since others of the table show the same kind of fault: all of them in the full run, else none. */
export const onlyInFull = <const Case>(...cases: readonly Case[]): readonly Case[] => (isFull ? cases : [])
