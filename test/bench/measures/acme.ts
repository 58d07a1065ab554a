import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { acmeArguments, ORDERS, startPebble } from '../../support/acme/pebble.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { person } from '../../support/edge/openssh.ts'
import { freePort } from '../../support/free-port.ts'
import { finding, type Measure } from '../measure.ts'
import { metric, until } from '../metrics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { quantile, summary, timed } from '../statistics.ts'
import { memoryMb } from '../usage.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const ROUNDS = 50
const DUE = 1_000
const AT_ONCE = 20
const VISIT_EVERY_MS = 10
const QUIET_MS = 10_000

async function createTunnel(mooring: Mooring, name: string, config: object = {}) {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId, config } })
  return answer.body.data.tunnel
}

async function runIssue() {
  const httpPort = await freePort()
  await using pebble = await startPebble({ httpPort })
  await using mooring = await startMooring({ args: [...acmeArguments(pebble, httpPort), ...UNLIMITED] })
  const [posts, valid]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    const { id } = await createTunnel(mooring, `t${round}`)
    posts.push(performance.now() - start)
    for (;;) {
      const { certificate } = (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data
      if (certificate.status === 'valid') break
      await delay(5)
    }
    valid.push(performance.now() - start)
  }
  const spread = ({ mad }: { mad: number }) => `MAD ${mad.toFixed(1)}`
  const [post, whole] = [summary(posts), summary(valid)]
  return [
    finding('POST of a tunnel, p50', { value: post.median, unit: 'ms', spread: spread(post) }, 100),
    finding('POST to a valid certificate, p50', { value: whole.median, unit: 'ms', spread: spread(whole) }, 1_500),
    finding('POST to a valid certificate, p99', { value: whole.p99, unit: 'ms' }),
  ]
}

export const acmeIssue: Measure = {
  name: 'acme-issue',
  method: `An embedded Mooring and Pebble without delays, on this machine. ${ROUNDS} tunnels are created one after the other. The time ends when \`GET …/certificate\` says \`valid\`.`,
  run: runIssue,
}

/** Visits a tunnel every 10 ms until `signal` aborts. Resolves with the durations in milliseconds. */
async function visit(host: string, port: number, signal: AbortSignal): Promise<readonly number[]> {
  const times: number[] = []
  while (!signal.aborted) {
    times.push(
      await timed(async () => {
        const [response] = (await once(get({ host: '127.0.0.1', port, headers: { Host: host }, agent: false }), 'response')) as [
          NodeJS.ReadableStream & { readonly statusCode: number },
        ]
        response.resume()
        await once(response, 'end')
        if (response.statusCode !== 200) throw new Error(`a visitor got ${response.statusCode}`)
      }),
    )
    await delay(VISIT_EVERY_MS)
  }
  return times
}

const certificates = (mooring: Mooring) => metric(mooring.ready.metricsUrl, 'mooring_tunnels', 'certificate="valid"')

/** Memory of Mooring with the same tunnels some time after its start, in MB. */
async function memoryWithNothingDue(dataDir: string, args: readonly string[]): Promise<number> {
  await using mooring = await startMooring({ dataDir, args })
  await until('all tunnels are settled', async () => (await certificates(mooring)) === DUE)
  await delay(QUIET_MS)
  return await memoryMb(mooring.process.pid ?? 0, 'Rss')
}

async function runDue() {
  await using dir = await temporaryDirectory()
  const httpPort = await freePort()
  await using backend = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const { port } = backend.address() as { readonly port: number }
  await using user = await person()
  await using first = await startPebble({ httpPort })
  const budget = ['--acme-weekly-budget', '100000']
  {
    await using mooring = await startMooring({
      dataDir: dir.path,
      args: [...acmeArguments(first, httpPort), ...UNLIMITED, ...budget],
    })
    const names = Array.from({ length: DUE }, (_, index) => `t${index}`)
    while (names.length > 0) await Promise.all(names.splice(0, AT_ONCE).map((name) => createTunnel(mooring, name)))
    await until('all certificates', async () => (await certificates(mooring)) === DUE, { patienceMs: 600_000, everyMs: 500 })
  }
  const idle = await memoryWithNothingDue(dir.path, [...acmeArguments(first, httpPort), ...UNLIMITED, ...budget])
  await using second = await startPebble({ httpPort })
  // Certificates of another CA are due at once.
  await using mooring = await startMooring({
    dataDir: dir.path,
    args: [...acmeArguments(second, httpPort), ...UNLIMITED, ...budget],
  })
  const start = performance.now()
  const visited = await createTunnel(mooring, 'visited', { authorizedKeys: [user.publicKey] })
  await user.forward(visited, port)
  const host = `${visited.hostname}.${visited.endpoint.domain}`
  const during = new AbortController()
  const loaded = visit(host, mooring.ready.httpPort, during.signal)
  await until('all renewals', () => Promise.resolve(second.count(ORDERS) > DUE && second.count(ISSUED) > DUE), {
    patienceMs: 900_000,
    everyMs: 500,
  })
  const seconds = (performance.now() - start) / 1_000
  const memory = await memoryMb(mooring.process.pid ?? 0, 'Rss')
  during.abort()
  const busy = await loaded
  const quietly = await visit(host, mooring.ready.httpPort, AbortSignal.timeout(QUIET_MS))
  const p99 = (times: readonly number[]) => quantile(times, 0.99)
  return [
    finding(`${DUE} certificates due at once, all renewed`, { value: seconds, unit: 's', digits: 0 }),
    finding('orders for each certificate', { value: second.count(ORDERS) / (DUE + 1), unit: '', digits: 2 }, 1),
    finding('memory of Mooring at the end (resident)', { value: memory, unit: 'MB', digits: 0 }),
    finding('of that, more than with nothing due', { value: memory - idle, unit: 'MB', digits: 0 }),
    finding('a visitor of a tunnel meanwhile, p99', { value: p99(busy), unit: 'ms' }),
    finding('a visitor of a tunnel afterwards, p99', { value: p99(quietly), unit: 'ms' }),
  ]
}

/** Issued certificates in Pebble's log. */
const ISSUED = /Issued certificate serial/g

export const acmeDue: Measure = {
  name: 'acme-due',
  method: `An embedded Mooring with ${DUE} tunnels, whose certificates are of a Pebble that another Pebble replaces: all are due when Mooring starts. A visitor of one more tunnel sends a request every ${VISIT_EVERY_MS} ms meanwhile, and afterwards for ${QUIET_MS / 1_000} s. Pebble and the visitor use the same two processors.`,
  run: runDue,
}
