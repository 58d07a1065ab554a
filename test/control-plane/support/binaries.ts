import { bedSettings, script } from '../../cluster/setup/bed.ts'
import { run } from '../../cluster/setup/run.ts'

/** Returns the directory of the Kubernetes programs. Compiles them first when the cache of the test bed lacks them. */
export async function binaries(): Promise<string> {
  const settings = await bedSettings()
  await run({ title: 'building Kubernetes (ten minutes at the first time)', file: script('build'), args: [] })
  return settings.TC_BIN
}
