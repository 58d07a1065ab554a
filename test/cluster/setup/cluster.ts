import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BedSettings, bedSettings, script, startBed } from './bed.ts'
import { type Docker, startDocker } from './docker.ts'
import { clientsOf, type Kubernetes, requireTools } from './kubectl.ts'
import { buildMooringImage, type MooringImage } from './mooring-image.ts'
import { borrowRelease, installRelease } from './release.ts'
import { run, say } from './run.ts'

/** What the files of the suite are given: plain data. kubectl and helm are in PATH. */
export interface Cluster {
  readonly kubeconfig: string
  /** Where a Docker engine answers. */
  readonly dockerHost: string
  /** `mooring:<tag>`: what the chart was installed with. */
  readonly image: string
  /** File in which the API server records who did what; absent where it is not to be had. */
  readonly auditLog?: string
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: Cluster
    /** Images of PostgreSQL to test the engines' SQL with, by series; absent: the npm packages' binaries. */
    readonly postgresImages?: Readonly<Record<'14' | '15', string>>
  }
}

export const POSTGRES_IMAGES = { '14': 'postgres:14.4', '15': 'postgres:15.4' } as const

/** Stand-ins of the official images, for machines that reach no image registry. */
const STAND_INS = fileURLToPath(new URL('../images/postgres', import.meta.url))

export interface RunningCluster extends AsyncDisposable {
  readonly cluster: Cluster
  readonly clients: Kubernetes
}

/**
 * Brings up all that the suite needs: a Kubernetes with Mooring installed in it, and a Docker engine. `KUBECONFIG` and `DOCKER_HOST` name those
 * to use; what they do not name is started on this machine, and ends with this process however that goes.
 */
export async function startCluster(): Promise<RunningCluster> {
  const given = isSet('KUBECONFIG')
  await using started = new AsyncDisposableStack()
  // One after the other: each of them uses both cores when it has something to do.
  const workshop = await openWorkshop(started, { given })
  const kubeconfig = await kubeconfigOf(started)
  await requireTools(['kubectl', 'helm'])
  const image = await makeImages(workshop)
  await importImages({ ...workshop, kubeconfig, archive: image.archive })
  const clients = clientsOf(kubeconfig)
  // Our own cluster ends as a whole.
  if (given) started.use(await borrowRelease(clients, image))
  else await installRelease(clients, image)
  // What kubectl, testcontainers and the tests' own clients go by.
  const { docker } = workshop
  setWhileStarted(started, 'KUBECONFIG', kubeconfig)
  setWhileStarted(started, 'DOCKER_HOST', docker.host)
  // The image of its watchdog cannot be had in a network without a way out, and our dockerd ends with all that runs in it.
  if (docker.isolated) setWhileStarted(started, 'TESTCONTAINERS_RYUK_DISABLED', 'true')
  const ownership = started.move()
  return {
    cluster: { kubeconfig, dockerHost: docker.host, image: `${image.repository}:${image.tag}`, ...auditLogOf(kubeconfig) },
    clients,
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

/** Sets a variable of this process, which may start another cluster later; empty counts as not set. */
function setWhileStarted(started: AsyncDisposableStack, name: string, value: string): void {
  const { [name]: former = '' } = process.env
  process.env[name] = value
  started.defer(() => {
    process.env[name] = former
  })
}

/** Makes all images that a cluster needs, and nothing else. @returns the name of Mooring's: `mooring:<tag>` */
export async function prepareImages(): Promise<string> {
  await using started = new AsyncDisposableStack()
  const { repository, tag } = await makeImages(await openWorkshop(started, { given: false }))
  return `${repository}:${tag}`
}

interface Workshop {
  readonly docker: Docker
  readonly settings: BedSettings
}

/** What images are made with. The cluster's clients are in PATH from here on. */
async function openWorkshop(started: AsyncDisposableStack, { given }: { readonly given: boolean }): Promise<Workshop> {
  await requireTools(['bash', 'npm', ...(given ? [] : ['unshare', 'setsid', 'flock', 'dpkg'])])
  const settings = await bedSettings()
  // After those of the machine where a cluster is given, as its owner may want clients of its version.
  process.env.PATH = given ? `${process.env.PATH}:${settings.TC_BIN}` : `${settings.TC_BIN}:${process.env.PATH}`
  return { docker: started.use(await startDocker(settings)), settings }
}

async function makeImages({ docker, settings }: Workshop): Promise<MooringImage> {
  const image = await buildMooringImage(docker, settings)
  const args = [join(settings.TC_CACHE, 'images')]
  const env = { BED: dirname(script('mkimage')) }
  await run({ title: 'making images of PostgreSQL', file: STAND_INS, args, env })
  return image
}

async function kubeconfigOf(started: AsyncDisposableStack): Promise<string> {
  const given = process.env.KUBECONFIG
  if (given === undefined || given === '') return started.use(await startBed()).kubeconfig
  say(`using the cluster of ${given}`)
  return given
}

interface Import extends Workshop {
  readonly kubeconfig: string
  readonly archive: string
}

/** Puts Mooring's image and those of PostgreSQL where the cluster and the Docker engine find them. */
async function importImages({ docker, settings, kubeconfig, archive }: Import): Promise<void> {
  const directory = join(settings.TC_CACHE, 'images')
  const postgres = Object.values(POSTGRES_IMAGES).map((name) => join(directory, `${name.replace(':', '-')}.tar`))
  if (docker.isolated) for (const file of postgres) await docker.docker(undefined, ['load', '--quiet', '--input', file])
  const state = dirname(kubeconfig)
  if (existsSync(join(state, 'run/containerd.sock'))) {
    const env = { TC_STATE: state }
    await run({ title: 'importing the images', file: script('image-import'), args: [archive, ...postgres], env })
  } else {
    say(`the nodes of this cluster must be able to get ${archive} and ${postgres.join(', ')} under the names in them`)
  }
}

function auditLogOf(kubeconfig: string): { readonly auditLog?: string } {
  const file = join(dirname(kubeconfig), 'logs/audit.log')
  return existsSync(file) ? { auditLog: file } : {}
}

const isSet = (name: string): boolean => (process.env[name] ?? '') !== ''
