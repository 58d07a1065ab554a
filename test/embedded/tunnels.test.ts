import { readFile } from 'node:fs/promises'
import { expect, test, vi } from 'vitest'
import { startLocalServer, type Site, visit } from '../support/edge/visitor.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { person } from '../support/edge/openssh.ts'
import { LATER } from '../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

test('every tunnel works after kill -9 and a restart, and lost sessions have an end in the journal', async () => {
  await using local = await startLocalServer()
  await using user = await person()
  await using first = await startMooring()
  const serves = async ({ ready }: Mooring, site: Site) => {
    const ca = await readFile(ready.ca, 'utf8')
    await vi.waitFor(async () => expect((await visit(ca, site)).status).toBe(200), LATER)
  }
  const body = { name: 'kept', regionId: first.ready.regionId, config: { authorizedKeys: [user.publicKey] } }
  const { tunnel } = (await first.call('POST', TUNNELS, { body, headers: { 'Idempotency-Key': 'k' } })).body.data
  await using client = await user.forward(tunnel, local.port)
  await serves(first, tunnel)
  first.process.kill('SIGKILL')
  await client.exited

  await using second = await startMooring({ dataDir: first.dataDir })
  const again = (await second.call('POST', TUNNELS, { body, headers: { 'Idempotency-Key': 'k' } })).body.data.tunnel
  expect(again).toMatchObject({ id: tunnel.id, hostname: tunnel.hostname, endpoint: { hostKeys: tunnel.endpoint.hostKeys } })
  const { connections } = (await second.call('GET', `${TUNNELS}/${tunnel.id}/connections`)).body.data
  expect(connections).toMatchObject([{ type: 'disconnect', reason: 'edge_lost' }, { type: 'connect' }])
  await using back = await user.forward(again, local.port)
  await serves(second, again)
  expect(back.said()).toContain(tunnel.url)
})
