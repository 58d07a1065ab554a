import { once } from 'node:events'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { acmeArguments, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf } from '../../support/api/answers.ts'
import { openStateOf } from '../../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { createStepTrap, type StepTrap } from '../../support/deployment/step-trap.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

/** Change of the account key (RFC 8555, section 7.3.5), with `kill -9` at each step of it. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let trap: StepTrap
let httpPort: number
/** First Mooring, which owns the data directory. */
let first: Mooring

beforeAll(async () => {
  httpPort = await freePort()
  // A validation takes 2 s, so that the key changes while the CA validates.
  pebble = opened.use(await startPebble({ httpPort, env: { PEBBLE_VA_NOSLEEP: '0', PEBBLE_VA_SLEEPTIME: '2' } }))
  trap = opened.use(await createStepTrap())
  first = opened.use(await startMooring({ args: acmeArguments(pebble, httpPort), ...trap.options }))
})
afterAll(() => opened.disposeAsync())

async function kill({ process }: Mooring): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const ended = once(process, 'exit')
  process.kill('SIGKILL')
  await ended
}

const startAt = (version: number): Promise<Mooring> =>
  startMooring({
    dataDir: first.dataDir,
    args: [...acmeArguments(pebble, httpPort), '--acme-account-key-version', String(version)],
    ...trap.options,
  })

/** Starts with another version of the key; the process dies at the step. */
async function dieAt(step: string, version: number): Promise<void> {
  await trap.arm({ step })
  await startAt(version).then(
    async ({ process }) => {
      if (process.exitCode === null && process.signalCode === null) await once(process, 'exit')
    },
    // It may die before it is ready.
    () => undefined,
  )
  expect(await trap.isSprung()).toBe(true)
}

async function create(mooring: Mooring, name: string): Promise<string> {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId } })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel.id
}

const valid = (mooring: Mooring, id: string) =>
  vi.waitFor(async () => {
    const { certificate } = (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data
    expect(certificate).toMatchObject({ status: 'valid', lastError: null })
  }, LATER)

const thumbprints = new Set<string>()

/** Expects that the status of the endpoint has this version of the key, with a thumbprint that no version before had. */
async function expectNewKey({ dataDir }: Mooring, version: number): Promise<void> {
  const thumbprint = await vi.waitFor(async () => {
    await using copy = await openStateOf(dataDir)
    const { status } = (await copy.store.list(TunnelEndpoint)).items[0] ?? {}
    expect(status).toMatchObject({ acmeAccountKeyVersion: version, acmeThumbprint: expect.any(String) as string })
    expect([...thumbprints]).not.toContain(status?.acmeThumbprint)
    return status?.acmeThumbprint ?? ''
  }, LATER)
  thumbprints.add(thumbprint)
}

const accounts = (): number => pebble.count(/There are now \d+ accounts/g)

test('another version changes the key of the account, and orders under way lead to certificates', async () => {
  await expectNewKey(first, 1)
  const ids = [await create(first, 'one'), await create(first, 'two')]
  await vi.waitFor(() => expect(pebble.count(/Pulled a task/g)).toBeGreaterThan(0), LATER)
  await kill(first)
  await using mooring = await startAt(2)
  await expectNewKey(mooring, 2)
  await Promise.all(ids.map((id) => valid(mooring, id)))
  await valid(mooring, await create(mooring, 'three'))
  expect(accounts()).toBe(1)
})

test.each([
  { step: 'account.key-stored', version: 3 },
  { step: 'account.key-changed', version: 4 },
  { step: 'account.key-adopted', version: 5 },
])('after kill -9 at $step the operator finds out which key the CA knows', async ({ step, version }) => {
  await dieAt(step, version)
  await using mooring = await startAt(version)
  await expectNewKey(mooring, version)
  await valid(mooring, await create(mooring, step.replace('account.', '')))
  expect(accounts()).toBe(1)
})

test('a start with the former version goes on with the key that was changed at the CA', async () => {
  await dieAt('account.key-changed', 6)
  await using mooring = await startAt(5)
  await valid(mooring, await create(mooring, 'former'))
  await expectNewKey(mooring, 6)
  expect(accounts()).toBe(1)
})
