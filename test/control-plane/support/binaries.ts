import { bedSettings, script } from '../../cluster/setup/bed.ts'
import { run } from '../../cluster/setup/run.ts'

/** The directory of Kubernetes' programs, compiled if need be as for the cluster's test bed. */
export async function binaries(): Promise<string> {
  const settings = await bedSettings()
  await run({ title: 'building Kubernetes (ten minutes at the first time)', file: script('build'), args: [] })
  return settings.TC_BIN
}
