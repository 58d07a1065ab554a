import type { TestProject } from 'vitest/node'
import { startEmbeddedHome } from './embedded.ts'
import type { StartHome } from './installation.ts'

/** Where the cluster home is started; only loaded when it is asked for. */
const CLUSTER = new URL('./cluster.ts', import.meta.url).href

/** Starts Mooring in the deployment mode that `MOORING_TEST_MODE` names (`embedded`, the default, or `cluster`), once for all files of the suite. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const start = await startOf(process.env.MOORING_TEST_MODE ?? 'embedded')
  const home = await start()
  project.provide('installation', home.installation)
  return async () => home[Symbol.asyncDispose]()
}

async function startOf(kind: string): Promise<StartHome> {
  if (kind === 'embedded') return startEmbeddedHome
  if (kind !== 'cluster') throw new Error(`MOORING_TEST_MODE must be embedded or cluster, not ${kind}`)
  const { startClusterHome } = (await import(CLUSTER)) as { startClusterHome: StartHome }
  return startClusterHome
}
