import { expect, test } from 'vitest'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { ca, hostnameOf, inNamespace, startTunnels, web } from '../../test/support/operator/tunnel-controllers.ts'
import { localIssuer } from './certificate-issuer.ts'
import { hostnameMark } from './resources.ts'

async function started() {
  const at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  const restore = (name: string, from: Pick<Tunnel, 'metadata'>) =>
    at.store.create(Tunnel, {
      metadata: { ...inNamespace(name), annotations: from.metadata.annotations ?? {} },
      spec: { regionId: 1 },
    })
  return { ...at, restore }
}

const kept = (tunnel: Tunnel) => conditionOf(tunnel, 'HostnameKept')

test('a tunnel restored with its annotation keeps its hostname; without it, it gets another', async () => {
  await using at = await started()
  await at.makeTunnel()
  const before = await at.reason('Assigned')
  await at.store.delete(Tunnel, web)
  await at.gone()
  await at.restore('web', before)
  const after = await at.reason('Assigned')
  expect(after.metadata.uid).not.toBe(before.metadata.uid)
  expect([hostnameOf(after), after.status?.url]).toEqual([hostnameOf(before), before.status?.url])
  expect(after.metadata.annotations).toEqual(before.metadata.annotations)
  expect(after.metadata.finalizers).toEqual([FINALIZER])
  expect(kept(after)).toBeUndefined()

  await at.store.delete(Tunnel, web)
  await at.gone()
  await at.makeTunnel()
  expect(hostnameOf(await at.reason('Assigned'))).not.toBe(hostnameOf(before))
})

test('a copy of a tunnel under another name gets a hostname and a mark of its own, and reports why', async () => {
  await using at = await started()
  await at.makeTunnel()
  const before = await at.reason('Assigned')
  await at.store.delete(Tunnel, web)
  await at.gone()
  await at.restore('copy', before)
  const copy = await at.reason('Assigned', 'copy')
  expect(hostnameOf(copy)).not.toBe(hostnameOf(before))
  expect(kept(copy)).toMatchObject({ status: 'False', reason: 'InvalidMark' })
  expect(kept(copy)?.message).toContain(annotations.hostname)
  expect(copy.metadata.annotations?.[annotations.hostname]).toMatch(new RegExp(`^${hostnameOf(copy)}\\.`))
})

test('a hostname in use by another tunnel is not assigned twice', async () => {
  await using at = await started()
  await at.makeTunnel()
  const first = await at.reason('Assigned')
  const mark = hostnameMark(localIssuer(() => ca).mac, inNamespace('late'), hostnameOf(first))
  await at.store.create(Tunnel, {
    metadata: { ...inNamespace('late'), annotations: { [annotations.hostname]: mark } },
    spec: { regionId: 1 },
  })
  const late = await at.reason('Assigned', 'late')
  expect(hostnameOf(late)).not.toBe(hostnameOf(first))
  expect(kept(late)).toMatchObject({ status: 'False', reason: 'HostnameTaken' })
})

/** Returns the number of writes of tunnels after one version up to another. */
async function writesOfTunnels(store: Store, first: Tunnel, last: Tunnel): Promise<number> {
  const over = new AbortController()
  let writes = 0
  const { resourceVersion } = first.metadata
  for await (const event of store.watch(Tunnel, { resourceVersion, signal: over.signal })) {
    if (event.type === 'bookmark') continue
    writes += 1
    if (event.object.metadata.resourceVersion === last.metadata.resourceVersion) break
  }
  over.abort()
  return writes
}

test('a tunnel made with kubectl gets mark and finalizer in one write, and a removed mark back', async () => {
  await using at = await started()
  const made = await at.makeTunnel()
  const tunnel = await at.reason('Assigned')
  // Mark and finalizer, hostname, the condition.
  expect(await writesOfTunnels(at.store, made, tunnel)).toBe(3)
  const mark = tunnel.metadata.annotations?.[annotations.hostname]
  expect(mark).toBeDefined()
  const taken = await at.store.mergePatch(Tunnel, web, { metadata: { annotations: { [annotations.hostname]: null } } })
  const since = Number(taken.metadata.resourceVersion)
  const after = await at.until(
    'web',
    ({ metadata }) => Number(metadata.resourceVersion) > since && metadata.annotations !== undefined,
  )
  expect(after.metadata.annotations).toEqual(tunnel.metadata.annotations)
  expect(await writesOfTunnels(at.store, taken, after)).toBe(1)
})
