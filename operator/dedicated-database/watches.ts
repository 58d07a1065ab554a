import type { Namespace } from '../../crds/core.ts'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Kind } from '../../crds/kind.ts'
import type { Plan } from '../../crds/plan.ts'
import type { Region } from '../../crds/region.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key } from '../../store/port.ts'
import { takesTunnels } from '../../crds/tunnel-endpoint.ts'
import { admissibleIn, type Quota } from '../quota/quota.ts'
import { aspectChangesOf, changesOf, eventsOf, objectsOf, type Source, specOf } from '../runtime/source.ts'
import type { Admins } from '../server/admins.ts'
import type { SshTunnelDeps } from './ssh-tunnel.ts'

export interface DatabaseWatchesDeps {
  /** Databases, with the indexes of indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly servers: Cache<typeof DatabaseServer>
  readonly plans: Cache<typeof Plan>
  readonly regions: Cache<typeof Region>
  readonly namespaces: Cache<typeof Namespace>
  readonly archives: Cache<typeof DatabaseArchive>
  readonly admins: Pick<Admins, 'onOpen'>
  readonly edges?: SshTunnelDeps | undefined
  readonly quota: Pick<Quota<DedicatedDatabase>, 'next'>
  /** Notifies of databases that the watchdog found to need a reconcile. */
  readonly onSuspicion: (wake: (key: Key) => void) => () => void
}

/** Sources of the reconciler of dedicated databases. */
export function databaseWatches(deps: DatabaseWatchesDeps): readonly Source[] {
  const { databases, plans, regions, namespaces, edges } = deps
  const onServer = (name: string): readonly Key[] => databases.byIndex('everyServer', name).map(keyOf)
  const those = (test: (database: DedicatedDatabase) => boolean): readonly Key[] => databases.list().filter(test).map(keyOf)
  const bySpec = <K extends Kind>(cache: Cache<K>, concerned: (changed: Key) => readonly Key[]) =>
    aspectChangesOf(cache, specOf, concerned)
  return [
    objectsOf(databases),
    admissibleIn(databases, deps.quota),
    changesOf(deps.servers, ({ name }) => onServer(name)),
    changesOf(deps.archives, ({ name }) => databases.byIndex('archive', name).map(keyOf)),
    bySpec(plans, ({ name }) => those(({ spec }) => spec.plan === name)),
    // A deleted Region is known by its name alone, and the spec names a Region by its id: so all databases that are not created yet are checked.
    bySpec(regions, () => those(({ status }) => status?.name === undefined)),
    ...(edges
      ? [
          aspectChangesOf(
            edges.endpoints,
            (endpoint) => `${specOf(endpoint)} ${takesTunnels(endpoint)}`,
            () => those(({ spec }) => spec.sshTunnel !== undefined),
          ),
        ]
      : []),
    // Kubernetes counts no generation of a Namespace, and its labels are not part of its spec.
    aspectChangesOf(
      namespaces,
      ({ metadata }) => `${metadata.uid} ${JSON.stringify(metadata.labels)}`,
      ({ name }) => databases.list({ namespace: name }).map(keyOf),
    ),
    eventsOf(deps.onSuspicion),
    eventsOf((enqueue) => deps.admins.onOpen((name) => onServer(name).forEach(enqueue))),
  ]
}
