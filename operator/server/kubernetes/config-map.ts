import { createHash } from 'node:crypto'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { JOURNAL_DATABASE } from '../../../crds/names.ts'
import { childMetadata, childNames } from './names.ts'
import type { Plain } from '../../kubernetes/plain.ts'
import type { DesiredServer } from './desired-server.ts'

/** ConfigMap of the engine's configuration and the script that creates its data directory. Holds no secret. */
export function configMapOf({ server, engine, admin, replaced }: DesiredServer): Plain<V1ConfigMap> {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata(server, childNames(server.metadata.name).config),
    data: { ...engine.files({ admin: admin.user, capacity: server.spec.capacity, own: ownDatabases(server), replaced }) },
  }
}

const ownDatabases = ({ spec }: DesiredServer['server']): readonly string[] | undefined =>
  spec.tenancy === 'internal' ? [JOURNAL_DATABASE] : undefined

/** Hash of a configuration, set on the pod: a changed configuration restarts the server. */
export function configHash({ data = {} }: Plain<V1ConfigMap>): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(data)))
    .digest('hex')
    .slice(0, 16)
}
