import type { TestProject } from 'vitest/node'
import { startEmbeddedInstallation } from './mooring.ts'
import type { StartInstallation } from './installation.ts'

/** Module that starts a cluster deployment, loaded only when it is needed. */
const CLUSTER = new URL('./cluster.ts', import.meta.url).href

/** Starts Mooring in the deployment mode that `MOORING_TEST_MODE` names (`embedded`, the default, or `cluster`), once for all files of the suite. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const start = await startOf(process.env.MOORING_TEST_MODE ?? 'embedded')
  const home = await start()
  project.provide('installation', home.installation)
  return async () => home[Symbol.asyncDispose]()
}

async function startOf(kind: string): Promise<StartInstallation> {
  if (kind === 'embedded') return startEmbeddedInstallation
  if (kind !== 'cluster') throw new Error(`MOORING_TEST_MODE must be embedded or cluster, not ${kind}`)
  const { startClusterInstallation } = (await import(CLUSTER)) as { startClusterInstallation: StartInstallation }
  return startClusterInstallation
}
