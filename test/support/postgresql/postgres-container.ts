import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers'
import type { Motor } from '../../../crds/motor.ts'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { at } from '../../../operator/server/kubernetes/engine-pod.ts'
import { postgresqlPod } from '../../../operator/server/kubernetes/postgresql.ts'
import { POD_SETTINGS } from '../../../operator/server/kubernetes/desired-server.ts'
import { ADMIN, clientsOf, type ThrowAwayPostgres, untilReachable, versionIn } from './postgres.ts'
import { patient } from '../patience.ts'

const CAPACITY = 50

const USER = POD_SETTINGS.user
const START_MS = patient(60_000)

/**
 * Runs the two steps of a pod. Process 1 is not the server, so that a crashed server is restarted in the same container. The
 * image needs nothing beyond docs/images.md.
 */
const SCRIPT = `
umask 022
printf %s "$CERTIFICATE" >${at.certificate}/tls.crt
printf %s "$CA" >${at.certificate}/ca.crt
(umask 077; printf %s "$KEY" >${at.certificate}/tls.key)
printf %s "$PASSWORD" >${at.admin}/password
${commandOf(postgresqlPod.initialise)}
cp -R ${at.output}/. "$REPLACED"
while :; do ${commandOf(postgresqlPod.serve)} || true; done
`
/** Sets `$pid` to the server's process id, the first line of PostgreSQL's pid file. */
const READ_PID = `read -r pid <${postgresqlPod.dataMount}/pgdata/postmaster.pid`

/** Starts a server in a container of `image`. It is reached from outside, and therefore over TLS. */
export async function startPostgresContainer(image: string, motor: Motor): Promise<ThrowAwayPostgres> {
  const { info } = await getContainerRuntimeClient()
  const { host } = info.containerRuntime
  const ca = await createCa(new Date())
  const { certificate, key } = await issueCertificate({ ca, names: [host], now: new Date() })
  const client = await issueCertificate({ ca, names: [ADMIN.user], now: new Date(), usage: 'client', subject: ADMIN.user })
  const outputAt = postgresqlPod.outputAt(motor, undefined)
  const files = postgresqlPod.files({ admin: ADMIN.user, capacity: CAPACITY, tls: true, outputAt })
  let log = ''
  const container = await new GenericContainer(image)
    .withUser(`${USER.uid}:${USER.gid}`)
    .withEntrypoint(['sh', '-ec', SCRIPT])
    .withEnvironment({
      CERTIFICATE: certificate,
      KEY: key,
      CA: ca.certificate,
      PASSWORD: ADMIN.password,
      REPLACED: outputAt,
    })
    .withTmpFs(
      Object.fromEntries(
        [at.certificate, at.admin, at.output, postgresqlPod.dataMount].map((path) => [
          path,
          `rw,uid=${USER.uid},gid=${USER.gid}`,
        ]),
      ),
    )
    .withCopyContentToContainer(
      Object.entries(files).map(([name, content]) => ({ target: `${at.config}/${name}`, content, mode: 0o644 })),
    )
    .withExposedPorts(postgresqlPod.port)
    .withLogConsumer((stream) => stream.on('data', (chunk: Buffer | string) => (log += chunk.toString())))
    .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/))
    .withStartupTimeout(START_MS)
    .start()
    .catch((cause: unknown) => {
      throw new Error(`container of ${image} did not start: ${log}`, { cause })
    })
  const target = { host, port: container.getMappedPort(postgresqlPod.port), ca: ca.certificate, client, ...ADMIN }
  // Process 1 restarts the server for the lifetime of the container.
  const starting = { target, isAlive: () => true, log: () => log }
  await untilReachable(starting)
  const clients = clientsOf(target)
  return {
    target,
    version: versionIn(await shell(container, 'postgres --version')),
    log: () => log,
    client: clients.open,
    async crash() {
      // PostgreSQL's immediate shutdown: no checkpoint, and recovery at the next start.
      await shell(container, `${READ_PID}; kill -QUIT "$pid"; while kill -0 "$pid" 2>/dev/null; do :; done`)
      await untilReachable(starting)
    },
    async [Symbol.asyncDispose]() {
      await clients.end()
      await container.stop({ timeout: 0 })
    },
  }
}

function commandOf(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
}

async function shell(container: StartedTestContainer, command: string): Promise<string> {
  const { exitCode, output } = await container.exec(['sh', '-c', command])
  if (exitCode !== 0) throw new Error(`${command}: ${output}`)
  return output
}
