// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { codeOf } from '../../support/api/answers.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import { openTunnelBench, type TunnelBench, type Visit } from '../tunnels/bench.ts'
import { type Edges, edgesOf, recordsOf, type TunnelRecords } from '../tunnels/edges.ts'
import { LATER } from '../../support/patience.ts'

/**
 * Tests that build on each other: an edge is lost, then the journal's server for a while. In the end the journal has all records, and then
 * loses them. A session counts as lost only after half a minute.
 */

const AWAY_MS = 20_000
const TUNNEL = 'web'
/** Path that tests request until it is served, so that the number of requests is unknown. */
const TRY = '/try'

/** Script for Node in a pod that can reach the journal. Drops the query of the owner's URI, because its `sslmode` would override `ssl`. */
const DROP = `(async () => {
  const client = new (require('pg').Client)({ connectionString: process.argv[1].split('?')[0], ssl: { rejectUnauthorized: false } })
  await client.connect()
  await client.query('DROP SCHEMA journal CASCADE')
  await client.end()
})()`

const deployment = openDeployment()
let bench: TunnelBench
let edges: Edges
let nodes: readonly string[]
let hostname: string
let records: TunnelRecords
/** Paths of all answered requests, each exactly once. */
const visited: string[] = []

beforeAll(async () => {
  bench = await openTunnelBench()
  edges = edgesOf(bench)
  nodes = (await bench.kubectl(['get', 'nodes', '--output', 'name'])).split('\n')
  hostname = await bench.tunnel(TUNNEL)
  records = await recordsOf(bench, deployment, TUNNEL)
  await edges.settled()
})
afterAll(async () => {
  await bench.kubectl(['uncordon', ...nodes])
  await bench[Symbol.asyncDispose]()
  await deployment[Symbol.asyncDispose]()
})

const pathsOf = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}/${n}`)
const served = (at: string) => vi.waitFor(async () => expect((await bench.visit(hostname, at, TRY)).status).toBe(200), LATER)

function answerOf({ status, headers, body }: Visit): string {
  const reason = headers['mooring-error']?.toString()
  return reason === undefined ? `${status} OK` : `${status} ${reason}: ${(JSON.parse(body) as { msg: string }).msg}`
}

/** Visits all paths concurrently. @returns the distinct answers */
async function visit(paths: readonly string[], at: string): Promise<readonly string[]> {
  const answers = await Promise.all(paths.map((path) => bench.visit(hostname, at, path)))
  visited.push(...paths)
  return [...new Set(answers.map(answerOf))]
}

test('visitors of the other edge get 502 and then 503 after a kill of an edge, until the client connects to the other edge', async () => {
  const [[lost, lostAt] = ['', ''], [, otherAt] = ['', '']] = [...(await edges.ready())]
  bench.connect(hostname, lostAt)
  await served(lostAt)
  await served(otherAt)
  expect(await visit(pathsOf('/before/lost', 20), lostAt)).toEqual(['200 OK'])
  expect(await visit(pathsOf('/before/other', 20), otherAt)).toEqual(['200 OK'])

  const held = 6
  const ofLost = Promise.allSettled(pathsOf('/held/lost', held).map((path) => bench.visit(hostname, lostAt, path)))
  const ofOther = visit(pathsOf('/held/other', held), otherAt)
  await vi.waitFor(() => expect(bench.held()).toBe(2 * held), LATER)
  process.kill(await edges.process(lost), 'SIGKILL')
  // The outcome of requests in flight is unknown. Later requests get 503 at once.
  expect(await ofOther).toEqual(['502 upstream_reset: the client was disconnected before its target sent a response'])
  expect(await visit(['/offline'], otherAt)).toEqual(['503 tunnel_offline: no client is connected to this tunnel'])
  expect((await ofLost).map(({ status }) => status)).toEqual(Array(held).fill('rejected'))

  bench.connect(hostname, otherAt)
  await served(otherAt)
  expect(await visit(pathsOf('/after/other', 20), otherAt)).toEqual(['200 OK'])
  await edges.settled()
  await served(lostAt)
  expect(await visit(pathsOf('/after/lost', 20), lostAt)).toEqual(['200 OK'])
})

/** Renames the tunnel by REST and then by kubectl. @returns both names */
async function rename(n: number): Promise<readonly string[]> {
  const names = [`rest ${n}`, `kubectl ${n}`]
  expect(codeOf(await deployment.call('PATCH', records.path, { body: { name: names[0] } }))).toBe('200 OK')
  const patch = JSON.stringify({ spec: { displayName: names[1] } })
  await bench.kubectl(['patch', 'tunnel', TUNNEL, '--namespace', bench.namespace, '--type=merge', '--patch', patch])
  return names
}

async function read(path: string): Promise<string> {
  const answer = await deployment.call('GET', path)
  return `${codeOf(answer)} ${answer.headers['retry-after']?.toString() ?? ''}`
}

test('tunnels and changes work while the journal’s server is down, reads are 503, and each record is stored once afterwards', async () => {
  const addresses = [...(await edges.ready()).values()]
  const [journal, names] = [['journal-0', '--namespace', SHARED_NAMESPACE], [] as string[]]
  const another = bench.connect(hostname)
  await vi.waitFor(async () => expect(await records.connections()).toHaveLength(3), LATER)
  await bench.kubectl(['cordon', ...nodes])
  await bench.kubectl(['delete', 'pod', ...journal, '--grace-period=0', '--force'])
  const until = performance.now() + AWAY_MS
  await another[Symbol.asyncDispose]()
  for (let n = 0; performance.now() < until; n += 1) {
    for (const [index, address] of addresses.entries()) expect(await visit([`/away/${index}/${n}`], address)).toEqual(['200 OK'])
    names.push(...(await rename(n)))
    for (const what of ['requests', 'connections', 'stats'])
      expect(await read(`${records.path}/${what}`)).toBe('503 unavailable 2')
    expect(await read(`${records.namespacePath}/audit`)).toBe('503 unavailable 2')
    expect(await read(records.path)).toBe('200 OK ')
  }
  await bench.kubectl(['uncordon', ...nodes])
  const updates = async () => (await records.entries()).filter(({ action }) => action === 'update')
  await vi.waitFor(async () => expect((await updates()).map(({ changes: [change] }) => change?.to)).toEqual(names), LATER)
  expect(
    new Set((await updates()).map(({ via, changes: [change] }) => `${via} ${via === String(change?.to).split(' ')[0]}`)),
  ).toEqual(new Set(['rest true', 'kubectl true']))
})

test('the journal has each request once and the end of each session once, including the lost one', async () => {
  const paths = async () => (await records.requests()).map(({ path }) => path).filter((path) => path !== TRY)
  await vi.waitFor(async () => expect((await paths()).toSorted()).toEqual(visited.toSorted()), LATER)
  const requests = await records.requests()
  expect(new Set(requests.map(({ id }) => id)).size).toBe(requests.length)

  const lastOf = async () => {
    const sessions = Object.values(Object.groupBy(await records.connections(), ({ sessionId }) => sessionId))
    return sessions.map((events = []) => events.map(({ type, reason }) => `${type} ${reason ?? ''}`.trim()))
  }
  // The second of the three clients is still connected.
  const whole = [['connect', 'disconnect edge_lost'], ['connect'], ['connect', 'disconnect client_disconnected']]
  await vi.waitFor(async () => expect(await lastOf()).toEqual(whole), LATER)
  // By now the check for unreported changes has run.
  expect((await records.entries()).filter(({ via }) => via === 'unknown')).toEqual([])
})

test('a recreated journal gets the connected sessions without a reconnect of clients', async () => {
  const owner = await bench.kubectl([
    'get',
    'secret',
    'journal-owner',
    '--namespace',
    SYSTEM_NAMESPACE,
    '--output',
    'jsonpath={.data.uri}',
  ])
  const uri = Buffer.from(owner, 'base64').toString()
  const selector = ['--selector', 'app.kubernetes.io/component=operator', '--output', 'jsonpath={.items[0].metadata.name}']
  const operator = await bench.kubectl(['get', 'pods', '--namespace', SYSTEM_NAMESPACE, ...selector])
  await bench.kubectl(['exec', operator, '--namespace', SYSTEM_NAMESPACE, '--', 'node', '--eval', DROP, uri])
  const known = async () => {
    const { body } = await expectSuccess(deployment.call('GET', records.path))
    return {
      connected: body.data.tunnel.connected,
      sessions: body.data.tunnel.sessions,
      events: (await records.connections()).map(({ type }) => type),
    }
  }
  await vi.waitFor(async () => expect(await known()).toEqual({ connected: true, sessions: 1, events: ['connect'] }), LATER)
})
