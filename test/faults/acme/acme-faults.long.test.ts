import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { type CaAnswer, type Lie, type LyingCa, startLyingCa } from '../../support/acme/lying-ca.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let ca: LyingCa
let mooring: Mooring

beforeAll(async () => {
  const httpPort = await freePort()
  pebble = opened.use(await startPebble({ httpPort, env: { PEBBLE_AUTHZREUSE: '50' } }))
  ca = opened.use(await startLyingCa(pebble))
  mooring = opened.use(await startMooring({ args: acmeArguments({ ...pebble, directoryUrl: ca.directoryUrl }, httpPort) }))
})
afterAll(() => opened.disposeAsync())
beforeEach(async () => {
  ca.tell(undefined)
  await pebble.resolveTo('127.0.0.1')
})
/** Removes all tunnels. A failed order is attempted again: it would get the lie of a later test, or count among that test's orders. */
afterEach(async () => {
  ca.tell(undefined)
  await Promise.all(made.splice(0).map(({ id }) => mooring.call('DELETE', `${TUNNELS}/${id}`)))
  const left = async () => (await mooring.call('GET', TUNNELS)).body.data.tunnels
  await vi.waitFor(async () => expect(await left()).toEqual([]), LATER)
})

/** Tunnels of the present test. */
const made: Tunnel[] = []

async function create(name: string): Promise<Tunnel> {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId } })
  expect(codeOf(answer)).toBe('201 OK')
  made.push(answer.body.data.tunnel)
  return answer.body.data.tunnel
}

const certificateOf = async ({ id }: Tunnel) => (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data.certificate

const until = (tunnel: Tunnel, status: string) =>
  vi.waitFor(async () => {
    const certificate = await certificateOf(tunnel)
    expect(certificate.status).toBe(status)
    return certificate
  }, LATER)

/** Changes the answers to requests whose path matches. */
const at =
  (path: RegExp, change: (answer: CaAnswer, payload: string) => CaAnswer | undefined): Lie =>
  async (asked, forward) => {
    const answer = await forward()
    return path.test(asked.path) && asked.method === 'POST' ? change(answer, asked.payload) : answer
  }

const problem = (status: number, type: string, headers: Record<string, string> = {}): CaAnswer => ({
  status,
  headers: { 'content-type': 'application/problem+json', 'replay-nonce': 'none', ...headers },
  body: JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: 'a reason of the CA', status }),
})

const json = (answer: CaAnswer, change: (data: Record<string, unknown>) => object): CaAnswer => ({
  ...answer,
  body: JSON.stringify(change(JSON.parse(answer.body) as Record<string, unknown>)),
})

/** Number of orders that were made for a tunnel. */
const ordersFor = ({ hostname }: Tunnel): number =>
  ca.asked.filter(({ path, payload }) => path.includes('order-plz') && payload.includes(hostname)).length

const ORDER = /\/(order-plz|my-order)\b/

test('DNS without an address costs no order; the sentence names the record, and the mended record leads to a certificate', async () => {
  await pebble.resolveTo('')
  const before = pebble.count(ORDERS)
  const began = Date.now()
  const tunnel = await create('no-dns')
  const failed = await until(tunnel, 'failed')
  expect(failed.lastError).toMatch(
    /^DNS has no address for [0-9a-f]{16}\.tunnel\.example\.test \(\w+\): make an A or AAAA record for \*\.tunnel\.example\.test$/,
  )
  expect(Date.parse(failed.nextAttemptAt ?? '')).toBeGreaterThan(began)
  expect(pebble.count(ORDERS)).toBe(before)
  await pebble.resolveTo('127.0.0.1')
  await until(tunnel, 'valid')
  expect(pebble.count(ORDERS) - before).toBe(1)
})

test('DNS that leads elsewhere costs no order, and the sentence names address and port', async () => {
  await pebble.resolveTo('127.0.0.2')
  const before = pebble.count(ORDERS)
  const { lastError } = await until(await create('elsewhere'), 'failed')
  expect(lastError).toMatch(/at 127\.0\.0\.2 cannot be reached \(ECONNREFUSED\): open port \d+ and forward it to the edges$/)
  expect(pebble.count(ORDERS)).toBe(before)
})

test.each<{ does: string; lie: Lie; says: RegExp }>([
  {
    does: 'an order for another name',
    lie: at(ORDER, (answer) => json(answer, (data) => ({ ...data, identifiers: [{ type: 'dns', value: 'other.test' }] }))),
    says: /^the certificate authority has answered with an order for other names$/,
  },
  {
    does: 'an order without a status',
    lie: at(ORDER, (answer) => json(answer, (data) => ({ ...data, status: 'fine' }))),
    says: /^the certificate authority has sent an invalid resource \(status: /,
  },
  {
    does: 'HTML in the place of JSON',
    lie: at(ORDER, (answer) => ({ ...answer, body: '<html>' })),
    says: /^the certificate authority 127\.0\.0\.1:\d+ has sent an answer that is not JSON$/,
  },
  {
    does: 'only challenges that Mooring does not know',
    lie: at(/authZ/, (answer) =>
      json(answer, (data) => ({ ...data, status: 'pending', challenges: [{ type: 'new-01', url: 'https://a.test/' }] })),
    ),
    says: /^the certificate authority offers no challenge http-01; it offers new-01$/,
  },
  {
    does: 'an error of the server',
    lie: at(ORDER, () => problem(500, 'serverInternal')),
    says: /^the certificate authority has answered: serverInternal: a reason of the CA$/,
  },
  {
    does: 'a rejection of the name',
    lie: at(/order-plz/, () => problem(403, 'rejectedIdentifier')),
    says: /^the certificate authority has answered: rejectedIdentifier: a reason of the CA$/,
  },
])('a CA that sends $does fails the attempt with a sentence', async ({ does, lie, says }) => {
  ca.tell(lie)
  const began = Date.now()
  const tunnel = await create(does.slice(0, 30))
  const failed = await until(tunnel, 'failed')
  expect(failed.lastError).toMatch(says)
  expect(Date.parse(failed.nextAttemptAt ?? '')).toBeGreaterThan(began)
})

test('a certificate for another key is not installed', async () => {
  const other = await issueCertificate({ ca: pebble.authority, names: ['other.test'], now: new Date() })
  ca.tell(at(/certZ/, (answer) => ({ ...answer, body: other.certificate })))
  expect((await until(await create('other key'), 'failed')).lastError).toBe(
    'the certificate authority has issued a certificate for another key',
  )
})

test('a request without an answer is repeated, and the same order leads to the certificate', async () => {
  let silent = 1
  ca.tell(async ({ path }, forward) => {
    const answer = await forward()
    silent -= path.includes('my-order') ? 1 : 0
    return silent === 0 && path.includes('my-order') ? undefined : answer
  })
  const tunnel = await create('silence')
  await vi.waitFor(
    async () => expect((await certificateOf(tunnel)).lastError).toMatch(/cannot be reached: it did not answer in time$/),
    LATER,
  )
  await until(tunnel, 'valid')
  expect(ordersFor(tunnel)).toBe(1)
})

test('a challenge that the CA leaves pending after a failed validation, as step-ca does, is answered again', async () => {
  let answers = 0
  ca.tell(async (asked, forward) => {
    if (asked.path.includes('chalZ') && asked.payload === '{}') {
      answers += 1
      // The first validation fails: Pebble does not hear of it.
      if (answers === 1) return { ...problem(200, 'none'), body: '{}' }
    }
    const answer = await forward()
    if (!asked.path.includes('authZ') || answers !== 1) return answer
    const error = { type: 'urn:ietf:params:acme:error:connection', detail: 'port 80 is closed' }
    return json(answer, ({ challenges, ...rest }) => ({
      ...{ ...rest, challenges: (challenges as object[]).map((challenge) => ({ ...challenge, status: 'pending', error })) },
    }))
  })
  const tunnel = await create('pending')
  await vi.waitFor(async () => expect((await certificateOf(tunnel)).lastError).toContain('connection: port 80 is closed'), LATER)
  await until(tunnel, 'valid')
  expect([answers, ordersFor(tunnel)]).toEqual([2, 1])
})

/** Time in seconds that the CA asks for. Also a busy machine makes another tunnel within this time. */
const LIMITED_SECONDS = 30

test('a limit of the CA stops all orders for the time that it asks for', async () => {
  let first = true
  ca.tell(async ({ path }, forward) => {
    if (!path.includes('order-plz') || !first) return forward()
    first = false
    return problem(429, 'rateLimited', { 'retry-after': String(LIMITED_SECONDS) })
  })
  const began = Date.now()
  const tunnel = await create('limited')
  const { lastError, nextAttemptAt } = await until(tunnel, 'failed')
  expect(lastError).toContain('rateLimited')
  expect(Date.parse(nextAttemptAt ?? '') - began).toBeGreaterThanOrEqual(LIMITED_SECONDS * 1_000)
  const other = await create('behind')
  const waits = await until(other, 'pending')
  expect(waits.lastError).toBe('the certificate authority has asked to send fewer requests')
  const asked = ca.asked.filter(({ path }) => path.includes('order-plz')).length
  await until(tunnel, 'valid')
  await until(other, 'valid')
  expect(Date.now() - began).toBeGreaterThanOrEqual(LIMITED_SECONDS * 1_000)
  expect(ca.asked.filter(({ path }) => path.includes('order-plz')).length - asked).toBe(2)
})

test('a CA that was replaced and knows neither account nor order issues the certificate', async () => {
  let forgets = true
  ca.tell(async ({ path }, forward) => {
    if (path.includes('order-plz') && forgets) {
      forgets = false
      return problem(400, 'accountDoesNotExist')
    }
    return forward()
  })
  await until(await create('replaced'), 'valid')
  expect(ca.asked.filter(({ path }) => path.includes('sign-me-up')).length).toBeGreaterThanOrEqual(2)
})
