/** Whether everything runs: long tests, all series of PostgreSQL, random seeds. Set by `MOORING_TEST_SCOPE=full` (`npm run test:full`). */
export const isFull = process.env.MOORING_TEST_SCOPE === 'full'
