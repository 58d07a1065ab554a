import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{crds,store,operator,apiserver,embedded}/**/*.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 60_000,
        },
      },
      // Real servers and real clients: one file at a time, on a machine of two cores.
      {
        test: {
          name: 'behaviour',
          include: ['test/behaviour/**/*.test.ts', 'test/embedded/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
