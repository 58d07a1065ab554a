import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { type BedSettings, startDockerd } from './bed.ts'
import { run } from './run.ts'

/** A Docker engine, and the client to it. */
export interface Docker extends AsyncDisposable {
  /** What goes into DOCKER_HOST. */
  readonly host: string
  /** Runs the client. */
  readonly docker: (title: string | undefined, args: readonly string[]) => Promise<string>
  /** Set when the engine is ours: it has no way out of its network but over this address. */
  readonly isolated: { readonly gateway: string; readonly cgroupParent: string } | undefined
}

/** The one that DOCKER_HOST names, else Debian's dockerd in namespaces of its own. */
export async function startDocker(settings: BedSettings): Promise<Docker> {
  const given = process.env.DOCKER_HOST
  if (given !== undefined && given !== '')
    return { ...client(given, 'docker'), isolated: undefined, [Symbol.asyncDispose]: nothing }
  const dockerd = await startDockerd()
  // The client of Debian's own package builds with BuildKit; a newer one needs a plugin for that, which may not be there.
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
  // An engine that was there before stays.
}

async function isThere(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
