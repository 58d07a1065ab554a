import { configDefaults, defineConfig } from 'vitest/config'
import { OwnOrder } from './test/support/own-order.ts'

/** What is waited for comes within moments, but for a machine that has other things to do: vitest's second is too short for that. */
const PATIENT = { expect: { poll: { timeout: 15_000 } } }

const CLUSTER_FAULTS = 'test/cluster/faults/**/*.test.ts'
const ON_A_CLUSTER = { globalSetup: ['test/cluster/setup.ts'], testTimeout: 120_000, hookTimeout: 240_000 }
/** These wait for others most of the time, so that more of them run than there are cores. */
const BESIDE = { maxWorkers: 3, sequence: { groupOrder: 5 } }

/** Each starts processes or hosts of its own, and waits for them half of the time. */
const TWO_AT_A_TIME = { maxWorkers: 2, sequence: { groupOrder: 4 } }

export default defineConfig({
  test: {
    sequence: { sequencer: OwnOrder },
    projects: [
      {
        test: {
          name: 'unit',
          ...PATIENT,
          include: ['{crds,shared,store,journal,process,operator,apiserver,edge,embedded,test/bench,test/layout}/**/*.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 60_000,
          // Files share a process, and so what they import: loading it anew for each takes longer than most tests. None leaves state in a module.
          isolate: false,
          // By default one core is left free, and half of two is too much.
          maxWorkers: 2,
        },
      },
      // Parts of Mooring with the databases, processes and disks that they start.
      {
        test: {
          name: 'servers',
          ...PATIENT,
          include: ['test/servers/**/*.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 60_000,
          // Files share a process, and so the servers that it has started. None leaves state in a module.
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // The outside surface, in the deployment mode that MOORING_TEST_MODE names; its files share one Mooring and do not disturb each other.
      {
        test: {
          name: 'behaviour',
          ...PATIENT,
          include: ['test/behaviour/**/*.test.ts'],
          globalSetup: ['test/support/deployment/setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      // What only a process of its own can show: one file at a time, on a machine of two cores.
      {
        test: {
          name: 'embedded',
          ...PATIENT,
          include: ['test/embedded/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
      // Each side of an edge by itself, with stock and with hostile clients.
      {
        test: {
          name: 'edge',
          ...PATIENT,
          include: ['test/edge/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          ...TWO_AT_A_TIME,
        },
      },
      // A real API server over a real etcd, without nodes, which a test may kill: what KubernetesStore and the leader election promise.
      {
        test: {
          name: 'control-plane',
          ...PATIENT,
          include: ['test/control-plane/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 1_200_000,
          ...BESIDE,
        },
      },
      // The cluster of KUBECONFIG, else one of its own: the same outside surface in the other home, and what only a cluster can show.
      {
        test: {
          name: 'cluster',
          ...PATIENT,
          include: ['test/behaviour/**/*.test.ts', 'test/cluster/**/*.test.ts'],
          exclude: [...configDefaults.exclude, CLUSTER_FAULTS],
          ...ON_A_CLUSTER,
          ...BESIDE,
        },
      },
      // What takes parts of the shared installation away, one file at a time.
      {
        test: {
          name: 'cluster-faults',
          ...PATIENT,
          include: [CLUSTER_FAULTS],
          ...ON_A_CLUSTER,
          fileParallelism: false,
          sequence: { groupOrder: 6 },
        },
      },
      // The slow half of what a process of its own can show: the process killed at each of its steps, and crowds.
      {
        test: {
          name: 'faults',
          ...PATIENT,
          include: ['test/faults/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          ...TWO_AT_A_TIME,
        },
      },
    ],
  },
})
