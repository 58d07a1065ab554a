import type { TestProject } from 'vitest/node'
import { installationIn } from '../support/deployment/cluster.ts'
import type { Installation } from '../support/deployment/installation.ts'
import { type Cluster, type ClusterEngines, POSTGRES_IMAGES, startCluster } from './setup/cluster.ts'
import { say } from './setup/commands.ts'

interface Started extends AsyncDisposable {
  readonly cluster: Cluster
  readonly installation: Installation
}

/** Suite that the projects of one run share: vitest loads this file again for each project, and only the first starts a cluster. */
const shared = globalThis as { mooringSuite?: Started }

/** Starts the cluster with Mooring in it, once for all files of the cluster suite. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared.mooringSuite === undefined
  // The tests of the gate use databases of PostgreSQL alone.
  const suite = (shared.mooringSuite ??= await start(project.name === 'smoke' ? 'postgresql' : 'all'))
  project.provide('cluster', suite.cluster)
  project.provide('installation', suite.installation)
  project.provide('postgresImages', POSTGRES_IMAGES)
  return isFirst ? async () => suite[Symbol.asyncDispose]() : undefined
}

async function start(engines: ClusterEngines): Promise<Started> {
  const began = Date.now()
  await using started = new AsyncDisposableStack()
  const running = started.use(await startCluster(engines))
  const { installation } = started.use(await installationIn(running))
  say(`ready after ${Math.round((Date.now() - began) / 1e3)} s`)
  const ownership = started.move()
  return { cluster: running.cluster, installation, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}
