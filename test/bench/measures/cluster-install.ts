import { finding, type Measure } from '../measure.ts'
import { freshCluster } from '../fresh-cluster.ts'
import { summary, timed } from '../statistics.ts'

const ROUNDS = 3

async function run() {
  const installed: number[] = []
  const first: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await using cluster = await freshCluster()
    const install = await timed(() => cluster.install())
    installed.push(install / 1e3)
    first.push((install + (await timed(() => cluster.firstInstance()))) / 1e3)
  }
  const seconds = (what: string, samples: readonly number[], limit?: number) =>
    finding(what, { value: summary(samples).median, unit: 's', spread: `worst ${Math.max(...samples).toFixed(1)}` }, limit)
  return [seconds('helm install to first database', first, 60), seconds('of that, helm install --wait', installed)]
}

export const clusterInstall: Measure = {
  name: 'cluster-install',
  method: `${ROUNDS} rounds, each in a new cluster of one node that has the images. A round times \`helm install --wait\`, and then the creation of a labelled Namespace and of a SharedInstance in it, until a watch reports the instance as ready.`,
  run,
}
