import { fileURLToPath } from 'node:url'
import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { run } from './commands.ts'

/** Returns the path of a script in test/cluster/bed. */
export const script = (name: string): string => fileURLToPath(new URL(`../bed/${name}`, import.meta.url))

/** Settings of the bed's scripts (bed/env.sh), from the environment and their defaults. */
export const BedSettings = z.object({
  TC_NAME: z.string(),
  TC_CACHE: z.string(),
  TC_STATE: z.string(),
  TC_BIN: z.string(),
  TC_DOCKER_HOST_IP: z.string(),
  TC_DOCKER_STATE: z.string(),
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

/** Environment that makes everything the bed starts end with this process, even when this process is killed. */
export const OWNED = { TC_OWNER: `${process.pid}` }

/** Kubernetes with one node on this machine. */
export interface Bed extends AsyncDisposable {
  readonly kubeconfig: string
}

/** Compiles the programs of Kubernetes that the cache lacks. */
export async function buildKubernetes(): Promise<void> {
  // Only one build runs at a time: a second run on this machine waits and then uses its result.
  const build = '. "$0" && mkdir -p "$TC_CACHE" && exec flock "$TC_CACHE/build.lock" "$1"'
  const args = ['-c', build, script('env.sh'), script('build')]
  await run({ title: 'building Kubernetes (ten minutes at the first time)', file: 'bash', args })
}

/** Compiles programs that the cache lacks and starts the cluster. Uses a manually started cluster instead and keeps it running. */
export async function startBed(): Promise<Bed> {
  await buildKubernetes()
  const started = !(await isUp('tc_init'))
  const kubeconfig = await run({ title: 'starting Kubernetes', file: script('up'), args: [], env: started ? OWNED : {} })
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      if (started) await run({ title: 'stopping Kubernetes', file: script('down'), args: [] })
    },
  }
}

/** Starts dockerd. Uses a manually started one instead and keeps it running. */
async function startDockerd(): Promise<{ readonly host: string } & AsyncDisposable> {
  const started = !(await isUp('tc_docker_init'))
  const host = await run({ title: 'starting dockerd', file: script('docker-up'), args: [], env: started ? OWNED : {} })
  return {
    host,
    async [Symbol.asyncDispose]() {
      if (started) await run({ title: 'stopping dockerd', file: script('docker-down'), args: [] })
    },
  }
}

/** Whether a manually started instance runs. One with an owner process does not count, because it ends with its owner. */
async function isUp(init: 'tc_init' | 'tc_docker_init'): Promise<boolean> {
  const state = init === 'tc_init' ? '$TC_STATE' : '$TC_DOCKER_STATE'
  const check = `. "$0"; [ -n "$(${init})" ] && [ ! -e "${state}/owner" ] && echo up || true`
  return (await run({ file: 'bash', args: ['-c', check, script('env.sh')] })) === 'up'
}

/** Docker engine and its client. */
export interface Docker extends AsyncDisposable {
  /** Value for DOCKER_HOST. */
  readonly host: string
  /** Runs the docker client. */
  readonly docker: (title: string | undefined, args: readonly string[]) => Promise<string>
  /** Network of an engine that the suite started, which reaches other networks only over `gateway`, and the path of its network namespace. Undefined for another engine. */
  readonly isolated: { readonly gateway: string; readonly cgroupParent: string; readonly namespace: string } | undefined
}

/** Uses the engine that DOCKER_HOST names, or starts Debian's dockerd in separate namespaces. */
export async function startDocker(settings: BedSettings): Promise<Docker> {
  const given = process.env.DOCKER_HOST
  if (given !== undefined && given !== '')
    return { ...client(given, 'docker'), isolated: undefined, [Symbol.asyncDispose]: nothing }
  const dockerd = await startDockerd()
  // Debian's docker client builds with BuildKit. A newer client needs a plugin for that, which may be missing.
  const file = (await isThere('/usr/bin/docker')) ? '/usr/bin/docker' : 'docker'
  return {
    ...client(dockerd.host, file),
    isolated: {
      gateway: settings.TC_DOCKER_HOST_IP,
      cgroupParent: `/${settings.TC_NAME}-docker`,
      namespace: await namespaceOf(settings),
    },
    [Symbol.asyncDispose]: () => dockerd[Symbol.asyncDispose](),
  }
}

async function namespaceOf({ TC_DOCKER_STATE: state }: BedSettings): Promise<string> {
  return `/proc/${(await readFile(join(state, 'init.pid'), 'utf8')).trim()}/ns/net`
}

function client(host: string, file: string): Pick<Docker, 'host' | 'docker'> {
  const env = { DOCKER_HOST: host, DOCKER_BUILDKIT: '1', BUILDKIT_PROGRESS: 'plain' }
  return { host, docker: (title, args) => run({ ...(title !== undefined && { title }), file, args, env }) }
}

async function nothing(): Promise<void> {
  // An engine that the suite did not start keeps running.
}

async function isThere(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
