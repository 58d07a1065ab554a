import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { type RunningCluster, startCluster } from '../../cluster/setup/cluster.ts'
import type { Kubernetes } from '../../cluster/setup/commands.ts'
import { REGION } from '../../cluster/setup/release.ts'
import type { Installation, StartedInstallation } from './installation.ts'
import { readMotors } from './served-motors.ts'

const IN_SYSTEM = ['--namespace', SYSTEM_NAMESPACE]
const OURS = ['--selector', 'app.kubernetes.io/instance=mooring']

/** Starts the cluster deployment: creates what `KUBECONFIG` and `DOCKER_HOST` do not name, and removes it at the end. */
export async function startClusterInstallation(): Promise<StartedInstallation> {
  await using started = new AsyncDisposableStack()
  const home = started.use(await installationIn(started.use(await startCluster())))
  const ownership = started.move()
  return { installation: home.installation, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}

/** Describes the Mooring that is installed in a cluster: its API at a node's address, its metrics by port-forward. */
export async function installationIn({ clients }: Pick<RunningCluster, 'clients'>): Promise<StartedInstallation> {
  await using started = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-suite-'))
  started.defer(() => rm(directory, { recursive: true, force: true }))
  const pods = await podsOf(clients)
  const logFiles = pods.map(({ name }) => join(directory, `${name}.log`))
  for (const [index, { name }] of pods.entries()) started.use(followLog(clients, name, logFiles[index] ?? name))
  const metricsUrls: string[] = []
  for (const { name, metricsPort } of pods) {
    if (metricsPort !== undefined) metricsUrls.push(`${await started.use(forward(clients, name, metricsPort)).origin}/metrics`)
  }
  const found = {
    kind: 'cluster',
    ...(await urlsOf(clients)),
    ca: await secretValue(clients, 'mooring-apiserver', 'ca.crt'),
    region: { id: REGION.id, name: REGION.name },
    motor: 'postgresql-15.4.0',
    issuer: JSON.parse(await secretValue(clients, 'mooring-issuer', 'issuer')) as Installation['issuer'],
    metricsUrls,
    logFiles,
  } as const
  const installation = { ...found, motors: await readMotors(found) }
  const ownership = started.move()
  return { installation, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({
        containers: z.array(
          z.object({ ports: z.array(z.object({ name: z.string().optional(), containerPort: z.int() })).default([]) }),
        ),
      }),
    }),
  ),
})

async function podsOf(
  clients: Kubernetes,
): Promise<readonly { readonly name: string; readonly metricsPort: number | undefined }[]> {
  const running = ['--field-selector', 'status.phase=Running', '--output', 'json']
  const { items } = Pods.parse(JSON.parse(await clients.kubectl(['get', 'pods', ...IN_SYSTEM, ...OURS, ...running])))
  return items.map(({ metadata, spec }) => ({
    name: metadata.name,
    metricsPort: spec.containers.flatMap(({ ports }) => ports).find(({ name }) => name === 'metrics')?.containerPort,
  }))
}

const Service = z.object({ spec: z.object({ ports: z.array(z.object({ name: z.string(), nodePort: z.int() })) }) })

async function urlsOf(clients: Kubernetes): Promise<Pick<Installation, 'sharedUrl' | 'dedicatedUrl'>> {
  const address = await clients.nodeAddress()
  const text = await clients.kubectl(['get', 'service', 'mooring-apiserver', ...IN_SYSTEM, '--output', 'json'])
  const { ports } = Service.parse(JSON.parse(text)).spec
  const url = (wanted: string): string => {
    const found = ports.find(({ name }) => name === wanted)
    if (!found) throw new Error(`the Service mooring-apiserver has no port ${wanted}`)
    return `https://${address}:${found.nodePort}`
  }
  return { sharedUrl: url('shared'), dedicatedUrl: url('dedicated') }
}

async function secretValue(clients: Kubernetes, name: string, key: string): Promise<string> {
  const text = await clients.kubectl(['get', 'secret', name, ...IN_SYSTEM, '--output', 'json'])
  const value = z.object({ data: z.record(z.string(), z.base64()) }).parse(JSON.parse(text)).data[key]
  if (value === undefined) throw new Error(`the Secret ${name} has no key ${key}`)
  return Buffer.from(value, 'base64').toString()
}

/** Runs kubectl until disposed. */
function kubectl({ kubeconfig }: Pick<Kubernetes, 'kubeconfig'>, args: readonly string[]) {
  const child = spawn('kubectl', args, { env: { ...process.env, KUBECONFIG: kubeconfig }, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  return {
    stdout: child.stdout,
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}

function followLog(clients: Kubernetes, pod: string, file: string): AsyncDisposable {
  const following = kubectl(clients, ['logs', pod, ...IN_SYSTEM, '--all-containers', '--follow'])
  following.stdout.pipe(createWriteStream(file))
  return following
}

function forward(clients: Kubernetes, pod: string, port: number): AsyncDisposable & { readonly origin: Promise<string> } {
  const { port: local, ...forwarding } = forwardPort(clients, { namespace: SYSTEM_NAMESPACE, object: pod, port })
  return { ...forwarding, origin: local.then((number) => `http://127.0.0.1:${number}`) }
}

/** Forwards a free port of this machine to one of a pod or Service, with kubectl, until disposed. */
export function forwardPort(
  clients: Pick<Kubernetes, 'kubeconfig'>,
  { namespace, object, port }: { readonly namespace: string; readonly object: string; readonly port: number },
): AsyncDisposable & { readonly port: Promise<number> } {
  const args = ['port-forward', object, '--namespace', namespace, '--address', '127.0.0.1', `:${port}`]
  const forwarding = kubectl(clients, args)
  return { port: localPort(forwarding.stdout), [Symbol.asyncDispose]: () => forwarding[Symbol.asyncDispose]() }
}

/**
 * Returns the port that kubectl prints in `Forwarding from 127.0.0.1:40001 -> 9464`. It reads all further output: kubectl
 * prints a line for each connection, and would block.
 */
async function localPort(stdout: NodeJS.ReadableStream): Promise<number> {
  const lines = createInterface({ input: stdout })
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?]
  const port = /127\.0\.0\.1:(\d+)/.exec(line ?? '')?.[1]
  if (port === undefined) throw new Error('kubectl did not forward a port')
  return Number(port)
}
