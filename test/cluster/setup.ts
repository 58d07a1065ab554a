import type { TestProject } from 'vitest/node'
import { installationIn } from '../support/cluster-home.ts'
import { POSTGRES_IMAGES, startCluster } from './setup/cluster.ts'
import { say } from './setup/run.ts'

/** Once for all files of the cluster suite: the cluster, and Mooring in it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const began = Date.now()
  await using started = new AsyncDisposableStack()
  const running = started.use(await startCluster())
  const home = started.use(await installationIn(running))
  project.provide('cluster', running.cluster)
  project.provide('installation', home.installation)
  project.provide('postgresImages', POSTGRES_IMAGES)
  say(`ready after ${Math.round((Date.now() - began) / 1e3)} s`)
  const ownership = started.move()
  return () => ownership.disposeAsync()
}
