import type { Logger } from 'pino'
import type { Motor } from '../../../crds/motor.ts'
import { MooringError } from '../../../shared/errors.ts'
import type { CompatibleMotors } from '../process/programs/binaries.ts'
import { ENGINE_UNUSABLE, versionFor } from '../process/programs/own-engine.ts'
import { POD_SETTINGS } from '../kubernetes/desired-server.ts'
import { confined } from './container.ts'
import { DOCKER_MISSING, type DockerClient } from './docker-client.ts'

/** Image that serves a motor, as an administrator names it. */
export interface DockerEngineSetting {
  readonly motor: Motor
  /** Absent: the official image of the exact version. */
  readonly image: string | undefined
}

/** Image of the machine's Docker that serves a motor. */
export interface DockerEngine {
  readonly motor: Motor
  readonly image: string
  /** Content hash of the image. */
  readonly imageId: string
  /** Version that the server in the image reports. */
  readonly version: string
}

/** Commands of server programs, the one of the image's own family first: MariaDB's images have a `mysqld`, too. */
const VERSION =
  'for name in postgres mariadbd mysqld mongod; do command -v "$name" >/dev/null && exec "$name" --version; done; exit 0'
const VERSION_MS = 60_000

interface OpenDeps {
  readonly docker: DockerClient
  readonly compatible: CompatibleMotors
  readonly logger: Logger
  readonly signal?: AbortSignal | undefined
}

/**
 * Gets an image, showing the progress of the download, and asks the server in it for its version.
 * @throws MooringError `engine_unusable` when Docker or the image is not available, or the image has no server of the motor's family or
 * version
 */
export async function openDockerEngine({ motor, image }: DockerEngineSetting, deps: OpenDeps): Promise<DockerEngine> {
  const setting = `--engine ${motor}=docker${image === undefined ? '' : `:${image}`}`
  const name = image ?? POD_SETTINGS.images[motor]
  if (name === undefined) throw unusable(setting, `no official image of ${motor} is known: name one by docker:<image>`)
  await checkDaemon(setting, deps)
  const imageId = await pull(setting, name, deps)
  const output = await reportedVersion(name, deps).catch((error: unknown) => {
    throw unusable(setting, `no server of the image ${name} runs: ${messageOf(error)}`, error)
  })
  const version = versionFor(motor, output, {
    compatible: deps.compatible,
    unusable: (why) => unusable(setting, `the image ${name} ${why}`),
  })
  return { motor, image: name, imageId, version }
}

/** Checks that the client program and the daemon work, and that containers can own files of this machine. */
async function checkDaemon(setting: string, { docker, signal }: OpenDeps): Promise<void> {
  try {
    await docker.run(['version', '--format', '{{.Server.Version}}'], { signal })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof MooringError && error.code === DOCKER_MISSING)
      throw unusable(setting, 'Docker is not installed: no program "docker" is in PATH', error)
    throw unusable(setting, `the Docker daemon does not answer (start Docker, or set DOCKER_HOST): ${messageOf(error)}`, error)
  }
  const security = await docker.run(['info', '--format', '{{json .SecurityOptions}}'], { signal })
  if (security.includes('name=rootless'))
    throw unusable(setting, 'rootless Docker is not supported: its containers cannot run as the owner of the data')
}

/** Pulls an image unless it is there. @returns its content hash */
async function pull(setting: string, image: string, { docker, logger, signal }: OpenDeps): Promise<string> {
  const inspect = () => docker.run(['image', 'inspect', '--format', '{{.Id}}', image], { signal })
  try {
    return await inspect()
  } catch {
    signal?.throwIfAborted()
  }
  logger.info({ image }, 'image of a database server is pulled')
  try {
    await docker.run(['pull', image], { signal, timeoutMs: 0, progress: true })
    return await inspect()
  } catch (error) {
    signal?.throwIfAborted()
    throw unusable(setting, `the image ${image} cannot be pulled: ${messageOf(error)}`, error)
  }
}

function reportedVersion(image: string, { docker, signal }: OpenDeps): Promise<string> {
  const run = ['run', '--rm', ...confined({ uid: 65_534, gid: 65_534 }), '--network', 'none']
  return docker.run([...run, '--entrypoint', 'sh', image, '-c', VERSION], { signal, timeoutMs: VERSION_MS })
}

const unusable = (setting: string, why: string, cause?: unknown): MooringError =>
  new MooringError(ENGINE_UNUSABLE, `${setting}: ${why}`, { cause })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
