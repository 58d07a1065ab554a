import type { V1EnvVar } from '@kubernetes/client-node'
import type { Family } from '../../../../crds/motor.ts'
import { EXPORTER_SOURCE, EXPORTER_USER } from '../../../engines/exporter.ts'
import type { Plain } from '../../../kubernetes/kinds.ts'
import { at } from '../engine-pod.ts'

/** Server whose metrics an exporter reads, over the loopback interface of their pod. */
export interface Exported {
  /** Port of the server. */
  readonly port: number
  /** Whether the server requires TLS of every client. */
  readonly tls: boolean
}

/** Properties of an exporter's program. Pure. */
export interface ExporterProgram {
  /** Port of `/metrics`. */
  readonly port: number
  /** Arguments of the image's entry point, without a password. */
  args(about: Exported): readonly string[]
  /** Environment of the container. It refers to the Secret for a password. */
  env(about: Exported, secretName: string): readonly Plain<V1EnvVar>[]
  /** Entries of the Secret by name, which are files below `at.exporter`. */
  secret(about: Exported & { readonly password: string; readonly ca: string }): Readonly<Record<string, string>>
}

/** Names of the Secret's entries. */
const PASSWORD = 'password'
const CA = 'ca.crt'
const OPTIONS = 'my.cnf'
const URI = 'uri'

const postgresqlExporter: ExporterProgram = {
  port: 9187,
  args: () => ['--web.listen-address=:9187'],
  // The access rules of the server admit this login over loopback without TLS.
  env: ({ port }) => [
    { name: 'DATA_SOURCE_URI', value: `${EXPORTER_SOURCE}:${port}/postgres?sslmode=disable` },
    { name: 'DATA_SOURCE_USER', value: EXPORTER_USER },
    { name: 'DATA_SOURCE_PASS_FILE', value: `${at.exporter}/${PASSWORD}` },
  ],
  secret: ({ password }) => ({ [PASSWORD]: password }),
}

/** Program for MySQL and MariaDB. A server that requires TLS requires it on loopback, too; its certificate names that address (addresses.ts). */
const mysqlExporter: ExporterProgram = {
  port: 9104,
  args: () => [
    '--web.listen-address=:9104',
    `--config.my-cnf=${at.exporter}/${OPTIONS}`,
    // No server is a replica.
    '--no-collect.slave_status',
  ],
  env: () => [],
  secret: ({ port, tls, password, ca }) => ({
    [OPTIONS]: [
      '[client]',
      ...[`user=${EXPORTER_USER}`, `password=${password}`, `host=${EXPORTER_SOURCE}`, `port=${port}`],
      // The exporter uses TLS only if it has a CA.
      ...(tls ? [`ssl-ca=${at.exporter}/${CA}`] : []),
      '',
    ].join('\n'),
    ...(tls && { [CA]: ca }),
  }),
}

const mongodbExporter: ExporterProgram = {
  port: 9216,
  args: () => ['--web.listen-address=:9216', '--collector.diagnosticdata', '--collector.dbstats'],
  env: (_about, name) => [{ name: 'MONGODB_URI', valueFrom: { secretKeyRef: { name, key: URI } } }],
  secret({ port, tls, password, ca }) {
    const query = new URLSearchParams({ authSource: 'admin', directConnection: 'true' })
    if (tls) query.set('tls', 'true')
    if (tls) query.set('tlsCAFile', `${at.exporter}/${CA}`)
    const uri = `mongodb://${EXPORTER_USER}:${password}@${EXPORTER_SOURCE}:${port}/admin?${query.toString()}`
    return { [URI]: uri, ...(tls && { [CA]: ca }) }
  },
}

/** Programs by engine family. */
export const EXPORTERS: Readonly<Record<Family, ExporterProgram>> = {
  postgresql: postgresqlExporter,
  mysql: mysqlExporter,
  mariadb: mysqlExporter,
  mongodb: mongodbExporter,
}
