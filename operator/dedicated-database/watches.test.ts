import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { labels } from '../../crds/names.ts'
import { Plan } from '../../crds/plan.ts'
import { Region } from '../../crds/region.ts'
import { keyToString } from '../../store/port.ts'
import { dedicatedDatabase } from '../../test/builders/dedicated.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createAdmins } from '../server/admins.ts'
import { databaseIndexes } from './indexes.ts'
import { databaseWatches } from './watches.ts'

/** Namespace as the Kubernetes API returns it: without a generation that changes. */
const namespace = (of: Readonly<Record<string, string>>, resourceVersion = '1'): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    ...{ name: 'acme--prod', uid: 'n', resourceVersion, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    labels: of,
  },
})

test('a database is reconciled when its Namespace gets the labels of a tenant, and not at another change of it', () => {
  const databases = settableCache(DedicatedDatabase, databaseIndexes)
  const namespaces = settableCache(Namespace)
  databases.put(dedicatedDatabase())
  namespaces.put(namespace({}))
  const sources = databaseWatches({
    ...{ databases: databases.cache, servers: settableCache(DatabaseServer).cache, plans: settableCache(Plan).cache },
    ...{ regions: settableCache(Region).cache, namespaces: namespaces.cache, archives: settableCache(DatabaseArchive).cache },
    ...{ admins: createAdmins(), quota: { next: () => [] }, onSuspicion: () => () => undefined },
  })
  const woken: string[] = []
  for (const source of sources) source.subscribe((key) => void woken.push(keyToString(key)))
  namespaces.put(namespace({}, '2'))
  expect(woken).toEqual([])
  namespaces.put(namespace({ [labels.organization]: 'acme', [labels.namespace]: 'prod' }, '3'))
  expect(woken).toEqual(['acme--prod/orders'])
})
