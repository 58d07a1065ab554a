import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'ssh2'
import { startMooring } from '../../support/deployment/mooring.ts'
import { newKey } from '../../support/edge/ssh2-client.ts'
import { openDelivering } from '../../support/webhooks/delivering.ts'
import { startReceiver } from '../../support/webhooks/receiver.ts'
import { finding, type Measure } from '../measure.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { quantile, summary } from '../statistics.ts'

const ROUNDS = 100
const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

async function runLatency() {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: UNLIMITED })
  const { privateKey, publicKey } = newKey()
  const config = { authorizedKeys: [publicKey] }
  const made = await mooring.call('POST', TUNNELS, { body: { name: 'bench', regionId: mooring.ready.regionId, config } })
  const { id, hostname, endpoint } = made.body.data.tunnel
  const times: number[] = []
  await using receiver = await startReceiver((response, { body }) => {
    const { timestamp } = JSON.parse(body) as { readonly timestamp: string }
    times.push(Date.now() - Date.parse(timestamp))
    response.end()
  })
  const url = `http://127.0.0.1:${receiver.port}/`
  await mooring.call('POST', `${TUNNELS}/${id}/webhooks`, { body: { url } })
  for (let round = 1; round <= ROUNDS; round++) {
    const client = new Client()
    client.connect({ host: endpoint.sshHost, port: endpoint.sshPort, username: hostname, privateKey })
    await once(client, 'ready')
    client.end()
    while (times.length < 2 * round) await setTimeout(1)
  }
  const { median, p99, mad } = summary(times)
  return [
    finding('connection event to webhook received, p50', { value: median, unit: 'ms', spread: `MAD ${mad.toFixed(1)}` }, 50),
    finding('connection event to webhook received, p99', { value: p99, unit: 'ms' }),
  ]
}

export const webhookLatency: Measure = {
  name: 'webhook-latency',
  method: `An embedded Mooring with one tunnel and a receiver on loopback. A client logs in and out ${ROUNDS} times. The time starts at the timestamp of the event, when the edge records it, and ends when the receiver has the body.`,
  run: runLatency,
}

const RECEIVERS = 100
/** Receivers that never answer. */
const SILENT = 5
/** Time limit of an attempt, as the operator has it. */
const ATTEMPT_MS = 10_000
const EVENTS = 10_000
const SECONDS = 60
const SLICE_MS = 100

async function runMany() {
  await using parts = new AsyncDisposableStack()
  const shared = parts.use(await openDelivering())
  const scopes = await Promise.all(Array.from({ length: RECEIVERS }, async () => parts.use(await shared.scope())))
  const times: number[] = []
  for (const [index, scope] of scopes.entries()) {
    const receiver = await startReceiver((response, { body }) => {
      if (index < SILENT) return
      times.push(Date.now() - Date.parse((JSON.parse(body) as { readonly timestamp: string }).timestamp))
      response.end()
    })
    parts.use(receiver)
    await scope.subscribe(`http://127.0.0.1:${receiver.port}/`)
  }
  scopes[0]?.start({ timeoutMs: ATTEMPT_MS })
  const answered = (EVENTS / RECEIVERS) * (RECEIVERS - SILENT)
  const cpu = process.cpuUsage()
  const began = performance.now()
  let written = 0
  while (written < EVENTS) {
    const due = Math.min(EVENTS, Math.ceil(((performance.now() - began) / 1_000) * (EVENTS / SECONDS)))
    const writes: Promise<unknown>[] = []
    for (; written < due; written++) {
      const scope = scopes[written % RECEIVERS]
      if (scope) writes.push(scope.connect())
    }
    await Promise.all(writes)
    await setTimeout(SLICE_MS)
  }
  while (times.length < answered) await setTimeout(SLICE_MS)
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return [
    finding(
      `${EVENTS} events to ${RECEIVERS} receivers, of which ${SILENT} never answer`,
      { value: seconds, unit: 's' },
      SECONDS + 1,
    ),
    finding('event to webhook received, p99', { value: quantile(times, 0.99), unit: 'ms' }),
    finding('processor time an event, receivers included', { value: (user + system) / 1_000 / EVENTS, unit: 'ms', digits: 2 }),
  ]
}

export const webhookMany: Measure = {
  name: 'webhook-many',
  method: `The operator's deliverer over a journal in SQLite, with ${RECEIVERS} tunnels and a receiver on loopback for each, all in one process and one namespace. ${SILENT} of the receivers never answer. ${EVENTS} connects are recorded evenly over ${SECONDS} s; the time ends when the last one for the others is received.`,
  run: runMany,
}
