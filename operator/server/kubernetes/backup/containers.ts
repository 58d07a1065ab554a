import type { V1Container, V1EnvVar, V1Volume, V1VolumeMount } from '@kubernetes/client-node'
import type { DatabaseServer } from '../../../../crds/database-server.ts'
import { partsOf } from '../../../../crds/motor.ts'
import { CONFINED, resourcesOf } from '../../../kubernetes/container.ts'
import type { Plain } from '../../../kubernetes/kinds.ts'
import { BACKUP_CONTAINER } from '../../../kubernetes/pod-state.ts'
import { SPOOL } from '../../archive.ts'
import { at } from '../engine-pod.ts'
import { DATA_VOLUME } from '../manifests.ts'
import { type BackupPodSettings, REPOSITORY_MOUNT, repositoryUrl } from './settings.ts'

/** Server that makes backups, or starts with those of another one. */
export interface BackedUp {
  readonly server: DatabaseServer
  readonly settings: BackupPodSettings
  /** Mount path of the volume with the data, and the data directory below it. */
  readonly dataMount: string
  readonly dataDirectory: string
  readonly port: number
  readonly admin: string
}

/** Volume with the backups; none with S3. */
const REPOSITORY_VOLUME = 'backups'
/** Volume with the Unix socket of the server, which its container and the agent's share. */
const SOCKET_VOLUME = 'socket'

/** Returns the volumes of a pod, in addition to those of every server. */
export function backupVolumes({ server, settings }: Pick<BackedUp, 'server' | 'settings'>): readonly Plain<V1Volume>[] {
  const { archive } = server.spec
  return [
    ...(archive
      ? [
          { name: SOCKET_VOLUME, emptyDir: { sizeLimit: '1Mi' } },
          { name: ENGINE_VOLUME, emptyDir: { sizeLimit: '1Gi' } },
        ]
      : []),
    ...(settings.claim === '' ? [] : [{ name: REPOSITORY_VOLUME, persistentVolumeClaim: { claimName: settings.claim } }]),
  ]
}

/** Volume with the copy of the engine's program, which "initialise" writes. */
const ENGINE_VOLUME = 'engine'

/** Mount of that volume in the container "initialise". */
export const engineMount = ({ spec }: DatabaseServer): readonly Plain<V1VolumeMount>[] =>
  spec.archive ? [{ name: ENGINE_VOLUME, mountPath: at.engine }] : []

/** Mount of the socket in the server's container. */
export const socketMount = ({ spec }: DatabaseServer): readonly Plain<V1VolumeMount>[] =>
  spec.archive ? [{ name: SOCKET_VOLUME, mountPath: at.socket }] : []

/** Init container that fills the volume of a new server with backups. It does nothing at later starts. */
export function restoreContainer(about: BackedUp): Plain<V1Container> | undefined {
  const { server, settings, dataMount } = about
  const { restore } = server.spec
  if (!restore) return undefined
  return {
    ...container(settings),
    name: 'restore',
    args: ['backup/restore-main.ts'],
    env: [...environment(about, restore.prefix), { name: 'MOORING_RESTORE_TIME', value: restore.time }],
    volumeMounts: [
      { name: DATA_VOLUME, mountPath: dataMount },
      { name: 'tmp', mountPath: '/tmp' },
      ...backupsMount(settings, restore.prefix).map((mount) => ({ ...mount, readOnly: true })),
    ],
  }
}

/** Container with the agent that archives the server. It has no token of the Kubernetes API, and sees only its own backups of a volume. */
export function agentContainer(about: BackedUp): Plain<V1Container> | undefined {
  const { server, settings, dataMount, port, admin } = about
  const { archive } = server.spec
  if (!archive) return undefined
  return {
    ...container(settings),
    name: BACKUP_CONTAINER,
    args: ['backup/main.ts'],
    env: [
      ...environment(about, archive.prefix),
      { name: 'MOORING_SPOOL', value: `${about.dataDirectory}/${SPOOL}` },
      { name: 'MOORING_SCRATCH', value: `${dataMount}/mooring_scratch` },
      { name: 'MOORING_SOCKET', value: at.socket },
      { name: 'MOORING_PORT', value: `${port}` },
      { name: 'MOORING_ADMIN', value: admin },
      { name: 'MOORING_PASSWORD_FILE', value: `${at.admin}/password` },
      { name: 'MOORING_PROGRAM', value: `${at.engine}/postgres` },
      { name: 'MOORING_ENGINE_VERSION', value: partsOf(server.spec.motor).version },
    ],
    volumeMounts: [
      { name: DATA_VOLUME, mountPath: dataMount },
      { name: SOCKET_VOLUME, mountPath: at.socket },
      { name: ENGINE_VOLUME, mountPath: at.engine, readOnly: true },
      { name: 'admin', mountPath: at.admin, readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
      ...backupsMount(settings, archive.prefix),
    ],
  }
}

/** Mount of the backups of one database, when the repository is a volume. */
function backupsMount({ claim }: BackedUp['settings'], prefix: string): readonly Plain<V1VolumeMount>[] {
  if (claim === '') return []
  return [{ name: REPOSITORY_VOLUME, mountPath: `${REPOSITORY_MOUNT}/${prefix}`, subPath: prefix }]
}

function environment({ settings, dataDirectory }: BackedUp, prefix: string): readonly Plain<V1EnvVar>[] {
  return [
    { name: 'NODE_OPTIONS', value: `--max-old-space-size=${settings.heapMiB}` },
    { name: 'MOORING_LOG_LEVEL', value: settings.logLevel },
    { name: 'MOORING_LOG_FORMAT', value: 'json' },
    { name: 'MOORING_REPOSITORY', value: repositoryUrl(settings) },
    { name: 'MOORING_PREFIX', value: prefix },
    { name: 'MOORING_DATA', value: dataDirectory },
    ...Object.entries(settings.env).map(([name, value]) => ({ name, value })),
  ]
}

function container({ image, pullPolicy, resources, secretName }: BackupPodSettings): Omit<Plain<V1Container>, 'name'> {
  return {
    image,
    imagePullPolicy: pullPolicy,
    ...(secretName !== '' && { envFrom: [{ secretRef: { name: secretName } }] }),
    securityContext: CONFINED,
    resources: resourcesOf(resources),
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
}
