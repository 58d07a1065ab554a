import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { run } from './run.ts'

/** A script of test/cluster/bed. */
export const script = (name: string): string => fileURLToPath(new URL(`../bed/${name}`, import.meta.url))

/** What the bed's scripts go by (bed/env.sh), from the environment and their defaults. */
export const BedSettings = z.object({
  TC_NAME: z.string(),
  TC_CACHE: z.string(),
  TC_STATE: z.string(),
  TC_BIN: z.string(),
  TC_DOCKER_HOST_IP: z.string(),
  TC_NET: z.string(),
  TC_POD_CIDR: z.string(),
  TC_SVC_CIDR: z.string(),
})
export type BedSettings = z.output<typeof BedSettings>

export async function bedSettings(): Promise<BedSettings> {
  const text = await run({ file: 'bash', args: ['-c', '. "$0" && env -0', script('env.sh')] })
  const entries = text.split('\0').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  return BedSettings.parse(Object.fromEntries(entries))
}

/** What the bed starts ends with this process, even when it is killed. */
export const OWNED = { TC_OWNER: `${process.pid}` }

/** A Kubernetes of one node on this machine. */
export interface Bed extends AsyncDisposable {
  readonly kubeconfig: string
}

/** Compiles what is not in the cache yet and starts the cluster, or takes the one that was started by hand, and then leaves it. */
export async function startBed(): Promise<Bed> {
  // One build at a time: a second run on this machine waits, and finds the work done.
  const build = '. "$0" && mkdir -p "$TC_CACHE" && exec flock "$TC_CACHE/build.lock" "$1"'
  const args = ['-c', build, script('env.sh'), script('build')]
  await run({ title: 'building Kubernetes (ten minutes at the first time)', file: 'bash', args })
  const started = !(await isUp('tc_init'))
  const kubeconfig = await run({ title: 'starting Kubernetes', file: script('up'), args: [], env: started ? OWNED : {} })
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      if (started) await run({ title: 'stopping Kubernetes', file: script('down'), args: [] })
    },
  }
}

/** Starts dockerd, or takes the one that was started by hand, and then leaves it. */
export async function startDockerd(): Promise<{ readonly host: string } & AsyncDisposable> {
  const started = !(await isUp('tc_docker_init'))
  const host = await run({ title: 'starting dockerd', file: script('docker-up'), args: [], env: started ? OWNED : {} })
  return {
    host,
    async [Symbol.asyncDispose]() {
      if (started) await run({ title: 'stopping dockerd', file: script('docker-down'), args: [] })
    },
  }
}

/** True for what was started by hand: what has an owner is not for others. */
async function isUp(init: 'tc_init' | 'tc_docker_init'): Promise<boolean> {
  const state = init === 'tc_init' ? '$TC_STATE' : '$TC_DOCKER_STATE'
  const check = `. "$0"; [ -n "$(${init})" ] && [ ! -e "${state}/owner" ] && echo up || true`
  return (await run({ file: 'bash', args: ['-c', check, script('env.sh')] })) === 'up'
}
