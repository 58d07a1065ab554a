import type { V1Container, V1Secret, V1Volume } from '@kubernetes/client-node'
import type { DatabaseServer } from '../../../../crds/database-server.ts'
import { CONFINED, resourcesOf } from '../../../kubernetes/container.ts'
import type { Plain } from '../../../kubernetes/kinds.ts'
import { EXPORTER_CONTAINER } from '../../../kubernetes/pod-state.ts'
import { encodeSecret } from '../../../secret-data.ts'
import type { DesiredServer } from '../desired-server.ts'
import { at } from '../engine-pod.ts'
import { childMetadata, childNames } from '../manifests.ts'
import type { DesiredExporter } from './settings.ts'

/** Name of the volume with the login of the exporter. */
const VOLUME = 'exporter'

/** Name of the exporter's port, by which the PodMonitor finds it. */
export const EXPORTER_PORT = 'metrics'

/** Server that the exporter is beside. */
type Monitored = Pick<DesiredServer, 'server' | 'engine' | 'tls'>

/** Returns the volume with the Secret of the exporter, which only its container mounts. */
export const exporterVolume = ({ metadata }: DatabaseServer): Plain<V1Volume> => ({
  name: VOLUME,
  secret: { secretName: childNames(metadata.name).exporter, defaultMode: 0o440 },
})

/** Returns the container with the exporter. It has no token of the Kubernetes API and no volume of the server. */
export function exporterContainer({ image, program, settings }: DesiredExporter, monitored: Monitored): Plain<V1Container> {
  const { server, engine, tls } = monitored
  const about = { port: engine.port, tls }
  const env = program.env(about, childNames(server.metadata.name).exporter)
  return {
    image,
    imagePullPolicy: settings.pullPolicy,
    name: EXPORTER_CONTAINER,
    args: [...program.args(about)],
    ...(env.length > 0 && { env: [...env] }),
    ports: [{ name: EXPORTER_PORT, containerPort: program.port, protocol: 'TCP' }],
    securityContext: CONFINED,
    resources: resourcesOf(settings.resources),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [{ name: VOLUME, mountPath: at.exporter, readOnly: true }],
  }
}

/** Returns the Secret with the login of the exporter. `ca`: CA of the server's certificate, in PEM. */
export function exporterSecretOf(
  { program }: DesiredExporter,
  { server, engine, tls }: Monitored,
  login: { readonly password: string; readonly ca: string },
): Plain<V1Secret> {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: childMetadata(server, childNames(server.metadata.name).exporter),
    data: { ...encodeSecret({ ...program.secret({ port: engine.port, tls, ...login }) }) },
  }
}
