// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { type Bind, dnsArguments, startBind } from '../../support/acme/bind.ts'
import { requestTunnel, untilWildcard } from '../../support/acme/mortal-tunnel.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf } from '../../support/api/answers.ts'
import { openStateOf } from '../../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../../support/deployment/mortal-mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const RECORD = '_acme-challenge.tunnel.example.test'

const opened = new AsyncDisposableStack()
let httpPort: number
let bind: Bind
let pebble: Pebble

beforeAll(async () => {
  httpPort = await freePort()
  bind = opened.use(await startBind())
  pebble = opened.use(await startPebble({ httpPort, nameserver: bind.address }))
})
afterAll(() => opened.disposeAsync())

const started = (at: Bind) => startMortal({ args: [...acmeArguments(pebble, httpPort), ...dnsArguments(at)] })

/** Names of orders on disk, and the records that may be in DNS. */
async function left({ dataDir }: MortalMooring) {
  await using copy = await openStateOf(dataDir)
  const { items } = await copy.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  const ledger = items.find(({ metadata }) => metadata.name === 'acme-dns-records')
  return {
    orders: items.map(({ metadata }) => metadata.name).filter((name) => name.endsWith('-order')),
    records: JSON.parse(decodeSecret(ledger?.data ?? {}, 'records') ?? '[]') as readonly unknown[],
  }
}

test.each([
  'order.check',
  'dns.recorded',
  'dns.written',
  'order.sent',
  'order.challenge',
  'order.answered',
  'order.issued',
  'tunnel.installed',
  'dns.removed',
])('after kill -9 at %s the same order leads to the certificate, and no record is left in DNS', async (step) => {
  const before = pebble.count(ORDERS)
  await using mooring = await started(bind)
  await mooring.expectKilledAt(step, () => requestTunnel(mooring))
  await mooring.start()
  const answer = await requestTunnel(mooring)
  expect(codeOf(answer)).toBe('201 OK')
  await untilWildcard(mooring, answer.body.data.tunnel)
  expect(pebble.count(ORDERS) - before).toBe(1)
  await vi.waitFor(async () => {
    expect(await bind.texts(RECORD)).toEqual([])
    expect(await left(mooring)).toEqual({ orders: [], records: [] })
  }, LATER)
})

test('a record that was left over is removed once the DNS server is back; other values of its name stay', async () => {
  const first = await startBind({ key: bind.key })
  await using cleanup = new AsyncDisposableStack()
  cleanup.use(first)
  await using ca = await startPebble({ httpPort, nameserver: first.address })
  await using mooring = await startMortal({
    args: [...acmeArguments(ca, httpPort), ...dnsArguments({ ...first, keyFile: bind.keyFile })],
  })
  await mooring.expectKilledAt('order.issued', () => requestTunnel(mooring))
  const [value = ''] = await first.texts(RECORD)
  expect(value).toMatch(/^[A-Za-z0-9_-]{43}$/)
  const { port, key } = first
  await first[Symbol.asyncDispose]()
  await mooring.start()
  await untilWildcard(mooring, (await requestTunnel(mooring)).body.data.tunnel)
  await using second = await startBind({
    ...{ port, key },
    records: [`_acme-challenge.tunnel TXT "${value}"`, '_acme-challenge.tunnel TXT "of another program"'],
  })
  await vi.waitFor(async () => expect(await second.texts(RECORD)).toEqual(['of another program']), LATER)
})
