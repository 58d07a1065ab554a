import { expect, test } from 'vitest'
import { Tunnel } from '../../crds/tunnel.ts'
import { conditionOf } from '../../store/conditions.ts'
import { HOUR, inNamespace, startTunnels } from '../../test/support/operator/tunnel-controllers.ts'

const MAX = 3
const NAMES = Array.from({ length: 8 }, (_, index) => `t${index}`)

async function started() {
  const at = await startTunnels({ max: MAX })
  await at.makeRegion()
  await at.makeEndpoint('a')
  const judged = (name: string) => at.until(name, (tunnel) => ['Assigned', 'QuotaExceeded'].includes(reasonOf(tunnel)))
  const makeAll = async () => {
    await Promise.all(NAMES.map((name) => at.makeTunnel(name)))
    return Promise.all(NAMES.map(judged))
  }
  return { ...at, makeAll }
}

const reasonOf = (tunnel: Tunnel): string => conditionOf(tunnel, 'Ready')?.reason ?? ''
const namesOf = (tunnels: readonly Tunnel[], reason: string): readonly string[] =>
  tunnels.filter((tunnel) => reasonOf(tunnel) === reason).map(({ metadata }) => metadata.name)
const byAge = ({ metadata: a }: Tunnel, { metadata: b }: Tunnel): number =>
  `${a.creationTimestamp} ${a.uid}` < `${b.creationTimestamp} ${b.uid}` ? -1 : 1

test('of eight concurrent tunnels those within the quota are served; the others report the quota and get nothing', async () => {
  await using at = await started()
  const all = await at.makeAll()
  expect(namesOf(all, 'Assigned')).toHaveLength(MAX)
  const waiting = all.filter((tunnel) => reasonOf(tunnel) === 'QuotaExceeded')
  const message = 'the namespace has 3 tunnels, and may have 3: delete one, or ask for a higher quota'
  for (const { metadata, status } of waiting) {
    expect(conditionOf({ status }, 'Ready')).toMatchObject({ status: 'False', message })
    expect([metadata.finalizers, metadata.annotations, status?.hostname]).toEqual([undefined, undefined, undefined])
  }
  expect(at.told().toSorted()).toEqual(waiting.map(() => `Tunnel QuotaExceeded: ${message}`))
})

test('the deletion of a tunnel admits the oldest waiting one only', async () => {
  await using at = await started()
  const all = await at.makeAll()
  const line = all.filter((tunnel) => reasonOf(tunnel) === 'QuotaExceeded').toSorted(byAge)
  const [served = ''] = namesOf(all, 'Assigned')
  await at.store.delete(Tunnel, inNamespace(served))
  const [first, ...others] = line.map(({ metadata }) => metadata.name)
  await at.reason('Assigned', first)
  for (const name of others) expect(reasonOf(await at.until(name, () => true))).toBe('QuotaExceeded')

  const [second = '', third = ''] = others
  // The deletion of a tunnel that never began admits no other.
  await at.store.delete(Tunnel, inNamespace(second))
  expect(await at.store.get(Tunnel, inNamespace(second))).toBeUndefined()
  await at.store.delete(Tunnel, inNamespace(first ?? ''))
  await at.reason('Assigned', third)
})

test('a tunnel that expires while it waits is deleted', async () => {
  await using at = await started()
  await at.makeAll()
  const expiresAt = new Date(at.now().getTime() + HOUR).toISOString()
  await at.store.create(Tunnel, { metadata: inNamespace('web'), spec: { regionId: 1, expiresAt } })
  await at.reason('QuotaExceeded')
  await at.advance(HOUR)
  await at.gone()
})

test('a tunnel with a hostname is served, whatever the quota', async () => {
  await using at = await started()
  const all = await at.makeAll()
  const [name = ''] = namesOf(all, 'QuotaExceeded')
  const before = { hostname: '0123456789abcdef', endpointRef: { name: 'a' } }
  await at.store.patchStatus(Tunnel, inNamespace(name), before)
  expect((await at.reason('Assigned', name)).status).toMatchObject(before)
  const [served = ''] = namesOf(all, 'Assigned')
  await at.store.delete(Tunnel, inNamespace(served))
  // There were four, so none is admitted yet.
  await at.makeTunnel('late')
  await at.reason('QuotaExceeded', 'late')
})
