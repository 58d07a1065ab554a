// Its tests build on each other:
// @module-tag whole-file
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bind, startBind } from '../../support/acme/bind.ts'
import { requestTunnel, untilWildcard } from '../../support/acme/mortal-tunnel.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { knownRecord } from '../../support/acme/record.ts'
import { codeOf } from '../../support/api/answers.ts'
import { startMooring } from '../../support/deployment/mooring.ts'
import { startMortal } from '../../support/deployment/mortal-mooring.ts'
import { createStepTrap } from '../../support/deployment/step-trap.ts'
import { freePort } from '../../support/free-port.ts'

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

const args = () => [...acmeArguments(pebble, httpPort), '--acme-challenge', 'dns-persist-01']

test.each([
  'order.check',
  'order.order',
  'order.sent',
  'order.validate',
  'order.challenge',
  'order.answered',
  'order.issued',
  'tunnel.installed',
])('after kill -9 at %s the same order leads to the certificate', async (step) => {
  const before = pebble.count(ORDERS)
  await using mooring = await startMortal({ args: args() })
  const { name, value } = await knownRecord(mooring.dataDir)
  await bind.setTexts(name, [value])
  await mooring.expectKilledAt(step, () => requestTunnel(mooring))
  await mooring.start()
  const answer = await requestTunnel(mooring)
  expect(codeOf(answer)).toBe('201 OK')
  await untilWildcard(mooring, answer.body.data.tunnel)
  expect(pebble.count(ORDERS) - before).toBe(1)
})

test('after kill -9 before the URL of the account was stored, the account is found again', async () => {
  await using trap = await createStepTrap()
  const accounts = () => pebble.count(/There are now \d+ accounts/g)
  const before = accounts()
  // Its data directory outlives the others.
  await using first = await startMooring()
  const { dataDir } = first
  first.process.kill('SIGKILL')
  await once(first.process, 'exit')
  await trap.arm({ step: 'account.registered' })
  await startMooring({ dataDir, args: args(), ...trap.options }).then(
    async ({ process }) => {
      if (process.exitCode === null && process.signalCode === null) await once(process, 'exit')
    },
    // It may die before it is ready.
    () => undefined,
  )
  expect(await trap.isSprung()).toBe(true)
  await using again = await startMooring({ dataDir, args: args() })
  expect((await knownRecord(again.dataDir)).value).toMatch(/accounturi=/)
  expect(accounts() - before).toBe(1)
})
