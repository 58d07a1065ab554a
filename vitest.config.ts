import { join } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'
import { type Motor, MOTORS } from './crds/motor.ts'
import { GateReporter, WHOLE_FILE } from './test/gate/reporter.ts'
import { OwnOrder } from './test/support/own-order.ts'
import { isFull } from './test/support/scope.ts'
import { patient } from './test/support/patience.ts'

// Each test process, worker thread and Mooring loads the same modules: Node compiles them once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node')

/** What takes long or depends on a quiet machine: part of `npm run test:full` alone. */
const LONG = '**/*.long.test.ts'
/** Tests of MongoDB alone, which run in the project `families`. */
const OF_MONGODB = 'test/behaviour/families/mongodb/**'
const CLUSTER_FAULTS = 'test/cluster/faults/**/*.test.ts'

/** Files to leave out, beside those that vitest leaves out by default. */
const without = (...patterns: readonly string[]) => [...configDefaults.exclude, ...(isFull ? [] : [LONG]), ...patterns]

const PATIENT = {
  // What is waited for comes within moments, but for a machine that has other things to do: vitest's second is too short for that.
  expect: { poll: { timeout: patient(15_000) } },
  exclude: without(),
  tags: [{ name: WHOLE_FILE, description: 'Tests that build on each other: a second try is one of the whole file.', retry: 0 }],
}
/** Timeouts of a test and of a hook, in milliseconds on a quiet machine. */
const within = (test: number, hook: number) => ({ testTimeout: patient(test), hookTimeout: patient(hook) })

/** For tests with real processes on a machine that has other things to do. Each second try is reported (test/gate/). */
const SECOND_TRY = { retry: { count: 1, delay: 2_000 } }

/** Motors that the gate tests whole; it uses one database of each of the others. The full run tests those in the projects `engines` and `families`. */
const FEW: readonly Motor[] = ['postgresql-15.4.0', 'mariadb-10.7.4']
const OTHERS = MOTORS.filter((motor) => !FEW.includes(motor))

const ON_A_CLUSTER = { provide: { motors: MOTORS }, globalSetup: ['test/cluster/setup.ts'], ...within(120_000, 240_000) }
/** These wait for others most of the time. More of them at once than there are cores would break their deadlines. */
const BESIDE = { maxWorkers: 2, sequence: { groupOrder: 6 } }

/** Each starts processes or hosts of its own, and waits for them half of the time. */
const TWO_AT_A_TIME = { maxWorkers: 2, sequence: { groupOrder: 4 } }

export default defineConfig({
  test: {
    reporters: ['default', new GateReporter()],
    sequence: { sequencer: OwnOrder },
    projects: [
      {
        test: {
          name: 'unit',
          ...PATIENT,
          ...within(20_000, 60_000),
          include: [
            '{crds,shared,store,journal,process,backup,operator,apiserver,edge,embedded,dashboard,test/bench,test/gate,test/layout}/**/*.test.ts',
          ],
          setupFiles: ['test/support/fixed-seed.ts'],
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
          ...SECOND_TRY,
          ...within(20_000, 60_000),
          include: ['test/servers/**/*.test.ts'],
          // One file shows a restore; the others of backups are in `engines`.
          exclude: without('test/servers/mongodb/**', 'test/servers/backup/{[!r]*,restored*}.test.ts'),
          provide: { motors: FEW },
          setupFiles: ['test/support/fixed-seed.ts'],
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
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/behaviour/**/*.test.ts'],
          exclude: without(OF_MONGODB),
          provide: { motors: FEW },
          globalSetup: ['test/support/deployment/setup.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      // What only a process of its own can show.
      {
        test: {
          name: 'embedded',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/embedded/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      // The motors that `servers` and `behaviour` leave out, and backups of both series.
      {
        test: {
          name: 'engines',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/servers/{mysql,mongodb,backup}/**/*.test.ts', 'test/servers/operator/size-limit.test.ts'],
          provide: { motors: OTHERS },
          setupFiles: ['test/support/fixed-seed.ts'],
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'families',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: [
            'test/behaviour/families/**/*.test.ts',
            'test/behaviour/dedicated/{lifecycle.test,metrics.long.test,ssh-tunnel.long.test}.ts',
          ],
          exclude: without('**/smoke.test.ts'),
          provide: { motors: OTHERS },
          globalSetup: ['test/support/deployment/setup.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      // The dashboard in Chromium, as the behaviour suite sees the API.
      {
        test: {
          name: 'dashboard',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/dashboard/**/*.test.ts'],
          provide: { motors: FEW },
          globalSetup: ['test/support/deployment/setup.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      // Each side of an edge by itself, with stock and with hostile clients.
      {
        test: {
          name: 'edge',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/edge/**/*.test.ts'],
          ...TWO_AT_A_TIME,
        },
      },
      // The slow half of what a process of its own can show: the process killed at each of its steps, and crowds.
      {
        test: {
          name: 'faults',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(60_000, 120_000),
          include: ['test/faults/**/*.test.ts'],
          ...TWO_AT_A_TIME,
        },
      },
      // A real API server over a real etcd, without nodes, which a test may kill: what KubernetesStore and the leader election promise.
      {
        test: {
          name: 'control-plane',
          ...PATIENT,
          ...SECOND_TRY,
          ...within(120_000, 300_000),
          include: ['test/control-plane/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 5 },
        },
      },
      // One boot of the cluster: the image, the chart, REST and kubectl in both directions, a served tunnel, the journal in PostgreSQL.
      {
        test: {
          name: 'smoke',
          ...PATIENT,
          ...SECOND_TRY,
          ...ON_A_CLUSTER,
          include: [
            'test/cluster/{kubectl,kubectl-tunnels,permissions,chart-values}.test.ts',
            'test/behaviour/{instances,tunnels}.test.ts',
          ],
          ...BESIDE,
        },
      },
      // The cluster of KUBECONFIG, else one of its own: the same outside surface in the other mode, and what only a cluster can show.
      {
        test: {
          name: 'cluster',
          ...PATIENT,
          ...SECOND_TRY,
          ...ON_A_CLUSTER,
          include: ['test/behaviour/**/*.test.ts', 'test/dashboard/**/*.test.ts', 'test/cluster/**/*.test.ts'],
          exclude: without(CLUSTER_FAULTS, 'test/dashboard/embedded/**'),
          ...BESIDE,
        },
      },
      // What takes parts of the shared installation away, one file at a time.
      {
        test: {
          name: 'cluster-faults',
          ...PATIENT,
          ...SECOND_TRY,
          ...ON_A_CLUSTER,
          include: [CLUSTER_FAULTS],
          fileParallelism: false,
          sequence: { groupOrder: 7 },
        },
      },
    ],
  },
})
