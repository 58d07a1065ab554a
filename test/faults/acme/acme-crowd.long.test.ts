import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER, patient } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const COUNT = 200

const opened = new AsyncDisposableStack()
let pebble: Pebble
let mooring: Mooring

beforeAll(async () => {
  const httpPort = await freePort()
  pebble = opened.use(await startPebble({ httpPort }))
  const limits = [
    '--quota-tunnels',
    '300',
    '--write-rate',
    '1000',
    '--write-burst',
    '1000',
    '--read-rate',
    '1000',
    '--read-burst',
    '1000',
  ]
  mooring = opened.use(await startMooring({ args: [...acmeArguments(pebble, httpPort), ...limits] }))
})
afterAll(() => opened.disposeAsync())

const create = (index: number) => mooring.call('POST', TUNNELS, { body: { name: `t${index}`, regionId: mooring.ready.regionId } })

test(`${COUNT} tunnels made at once all get certificates, by one order each`, { timeout: patient(400_000) }, async () => {
  const answers = await Promise.all(Array.from({ length: COUNT }, (_, index) => create(index)))
  expect(new Set(answers.map(codeOf))).toEqual(new Set(['201 OK']))
  await vi.waitFor(async () => {
    const metrics = await (await fetch(mooring.ready.metricsUrl)).text()
    expect(metrics).toContain(`mooring_tunnels{certificate="valid"} ${COUNT}\n`)
  }, LATER)
  expect(pebble.count(ORDERS)).toBe(COUNT)
})
