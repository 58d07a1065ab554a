import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { Namespace } from '../../crds/core.ts'
import { JOURNAL_SERVER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { region } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createOwnServer, placementFor } from './own-server.ts'

const OLD = { id: 'postgresql-14.4.0', warm: false } as const
const NEW = { id: 'postgresql-15.4.0', warm: false } as const
const OTHER = { id: 'mysql-8.0.29', warm: true } as const
const [one, two] = ['first', 'second'].map(
  (name, index) => (motors: readonly (typeof OLD | typeof NEW | typeof OTHER)[]) => region({ name, regionId: index + 1, motors }),
)

test.each([
  { does: 'nowhere without a region', regions: [], placement: undefined },
  { does: 'nowhere without PostgreSQL', regions: [one?.([OTHER])], placement: undefined },
  { does: 'on the newest PostgreSQL of a region', regions: [one?.([OLD, NEW])], placement: ['first', NEW.id] },
  { does: 'in the region with the lowest number', regions: [two?.([NEW]), one?.([OLD])], placement: ['first', OLD.id] },
  { does: 'in the first region that has a PostgreSQL', regions: [one?.([OTHER]), two?.([OLD])], placement: ['second', OLD.id] },
])('the journal’s server is placed $does', ({ regions, placement }) => {
  const found = placementFor(regions.filter((each) => each !== undefined))
  expect(found && [found.region.spec.name, found.motor]).toEqual(placement)
})

test('the server is created once when a region exists, and takes no tenants', async () => {
  await using place = await openTemporaryStore()
  const { store } = place
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const [regions, servers] = [settableCache(Region), settableCache(DatabaseServer)]
  const adminCertificate = () => Promise.reject(new Error('no login is asked for'))
  const own = createOwnServer({
    store,
    regions: regions.cache,
    servers: servers.cache,
    ca: () => '',
    adminCertificate,
    dial: 'name',
  })
  const made = async () => (await store.list(DatabaseServer)).items.map(({ metadata, spec }) => [metadata.name, spec.tenancy])
  expect([await own.ensure(), await made()]).toEqual([false, []])
  regions.put(region())
  expect(await Promise.all([own.ensure(), own.ensure()])).toEqual([false, false])
  expect(await made()).toEqual([[JOURNAL_SERVER, 'internal']])
  expect(own.host).toBe('journal.mooring-shared.svc')
})
