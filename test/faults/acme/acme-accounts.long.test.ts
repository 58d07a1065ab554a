import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

/** A CA that binds accounts to customers (RFC 8555, section 7.3.4), and that takes seconds to validate. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const KEY_ID = 'customer-7'
const HMAC_KEY = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W'
const OTHER_KEY = 'b10lLJs8l1GPIzsLP0s6pMt8O0XVGnfTaCeROxQM0BIt2XrJMDHJZBM5NuQmQJQH'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let httpPort: number
let directory: string

beforeAll(async () => {
  httpPort = await freePort()
  directory = await mkdtemp(join(tmpdir(), 'mooring-accounts-'))
  opened.defer(() => rm(directory, { recursive: true, force: true }))
  const config = { externalAccountBindingRequired: true, externalAccountMACKeys: { [KEY_ID]: HMAC_KEY } }
  const env = { PEBBLE_VA_NOSLEEP: '0', PEBBLE_VA_SLEEPTIME: '3' }
  pebble = opened.use(await startPebble({ httpPort, config, env }))
})
afterAll(() => opened.disposeAsync())

/** Starts a Mooring whose account is bound by this key, with one tunnel. */
async function startBound(key: string): Promise<Mooring & { readonly id: string }> {
  const file = join(directory, `${key.slice(0, 8)}.key`)
  await writeFile(file, `${key}\n`)
  const ofAccount = ['--acme-eab-key-id', KEY_ID, '--acme-eab-key-file', file]
  const mooring = await startMooring({ args: [...acmeArguments(pebble, httpPort), ...ofAccount] })
  const body = { name: 'web', regionId: mooring.ready.regionId }
  const { id } = (await mooring.call('POST', TUNNELS, { body })).body.data.tunnel
  return { ...mooring, id }
}

const certificateOf = async (mooring: Mooring & { readonly id: string }) =>
  (await mooring.call('GET', `${TUNNELS}/${mooring.id}/certificate`)).body.data.certificate

test('a binding by the right key, and a validation of seconds, lead to a certificate by one order', async () => {
  await using mooring = await startBound(HMAC_KEY)
  await vi.waitFor(async () => expect(await certificateOf(mooring)).toMatchObject({ status: 'valid', lastError: null }), LATER)
  expect(pebble.count(ORDERS)).toBe(1)
  expect(mooring.output()).not.toContain(HMAC_KEY)
})

test('a binding by a wrong key costs no order, and the error has the reason of the CA and not the key', async () => {
  const before = pebble.count(ORDERS)
  await using mooring = await startBound(OTHER_KEY)
  const { lastError } = await vi.waitFor(async () => {
    const certificate = await certificateOf(mooring)
    expect(certificate).toMatchObject({ status: 'failed', nextAttemptAt: expect.any(String) as string })
    return certificate
  }, LATER)
  expect(lastError).toMatch(/external account/i)
  expect(lastError).not.toContain(OTHER_KEY)
  expect(pebble.count(ORDERS)).toBe(before)
  const log = await readFile(join(mooring.dataDir, 'ready.json'), 'utf8')
  expect(`${mooring.output()}${log}`).not.toContain(OTHER_KEY)
})
