import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { type BedSettings, startDockerd } from './bed.ts'
import { run } from './run.ts'

/** Docker engine and its client. */
export interface Docker extends AsyncDisposable {
  /** Value for DOCKER_HOST. */
  readonly host: string
  /** Runs the docker client. */
  readonly docker: (title: string | undefined, args: readonly string[]) => Promise<string>
  /** Network of an engine that the suite started, which reaches other networks only over `gateway`. Undefined for another engine. */
  readonly isolated: { readonly gateway: string; readonly cgroupParent: string } | undefined
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
    isolated: { gateway: settings.TC_DOCKER_HOST_IP, cgroupParent: `/${settings.TC_NAME}-docker` },
    [Symbol.asyncDispose]: () => dockerd[Symbol.asyncDispose](),
  }
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
