import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { codeOf } from '../../support/api/answers.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import { openTunnelBench, type TunnelBench, type Visit } from '../tunnels/bench.ts'
import { type Edges, edgesOf } from '../tunnels/edges.ts'
import { recordsOf, type TunnelRecords } from '../tunnels/records.ts'

/**
 * One story, in the order of its tests: an edge is lost, then the journal's server for a while, and in the end the journal has all of it, and
 * loses it. That a session was lost is certain only after half a minute.
 */

const AWAY_MS = 20_000
/** All that goes on by itself. */
const WITHIN = { timeout: 50_000, interval: 200 }
/** A session counts as lost after half a minute without its edge, and is looked for every ten seconds, by a leader who may have to become one first. */
const LOST_WITHIN = { timeout: 100_000, interval: 200 }
const TUNNEL = 'web'
/** Asked for until it is served, so that nobody knows how often. */
const TRY = '/try'

/** For Node in a pod that reaches the journal, with the URI of its owner, whose `sslmode` would outdo `ssl`. */
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
/** What visitors asked for and were answered, each once. */
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
const served = (at: string) => vi.waitFor(async () => expect((await bench.visit(hostname, at, TRY)).status).toBe(200), WITHIN)

function toldBy({ status, headers, body }: Visit): string {
  const reason = headers['mooring-error']?.toString()
  return reason === undefined ? `${status} OK` : `${status} ${reason}: ${(JSON.parse(body) as { msg: string }).msg}`
}

/** All at once. @returns what they were told, without what is told twice */
async function visit(paths: readonly string[], at: string): Promise<readonly string[]> {
  const answers = await Promise.all(paths.map((path) => bench.visit(hostname, at, path)))
  visited.push(...paths)
  return [...new Set(answers.map(toldBy))]
}

test('an edge killed amid requests: visitors of the other are told so, and that no client is there until it comes back by that one', async () => {
  const [[lost, lostAt] = ['', ''], [, otherAt] = ['', '']] = [...(await edges.ready())]
  bench.connect(hostname, lostAt)
  await served(lostAt)
  await served(otherAt)
  expect(await visit(pathsOf('/before/lost', 20), lostAt)).toEqual(['200 OK'])
  expect(await visit(pathsOf('/before/other', 20), otherAt)).toEqual(['200 OK'])

  const held = 6
  const ofLost = Promise.allSettled(pathsOf('/held/lost', held).map((path) => bench.visit(hostname, lostAt, path)))
  const ofOther = visit(pathsOf('/held/other', held), otherAt)
  await vi.waitFor(() => expect(bench.held()).toBe(2 * held), WITHIN)
  process.kill(await edges.process(lost), 'SIGKILL')
  // Under way by then: nobody knows what became of them. Those who come later are told at once.
  expect(await ofOther).toEqual(['502 upstream_reset: the client was disconnected before its target had answered'])
  expect(await visit(['/offline'], otherAt)).toEqual(['503 tunnel_offline: no client is connected to this tunnel'])
  expect((await ofLost).map(({ status }) => status)).toEqual(Array(held).fill('rejected'))

  bench.connect(hostname, otherAt)
  await served(otherAt)
  expect(await visit(pathsOf('/after/other', 20), otherAt)).toEqual(['200 OK'])
  await edges.settled()
  await served(lostAt)
  expect(await visit(pathsOf('/after/lost', 20), lostAt)).toEqual(['200 OK'])
})

/** By REST and by kubectl, one after the other. @returns the names it has had */
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

test('with the journal’s server away tunnels and changes go on, readers are told so, and all of it is there afterwards, once', async () => {
  const addresses = [...(await edges.ready()).values()]
  const [journal, names] = [['journal-0', '--namespace', SHARED_NAMESPACE], [] as string[]]
  const another = bench.connect(hostname)
  await vi.waitFor(async () => expect(await records.connections()).toHaveLength(3), WITHIN)
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
  await vi.waitFor(async () => expect((await updates()).map(({ changes: [change] }) => change?.to)).toEqual(names), WITHIN)
  expect(
    new Set((await updates()).map(({ via, changes: [change] }) => `${via} ${via === String(change?.to).split(' ')[0]}`)),
  ).toEqual(new Set(['rest true', 'kubectl true']))
})

test('in the end each request is in the journal once, and so is the end of each session, of the lost one too', async () => {
  const paths = async () => (await records.requests()).map(({ path }) => path).filter((path) => path !== TRY)
  await vi.waitFor(async () => expect((await paths()).toSorted()).toEqual(visited.toSorted()), WITHIN)
  const requests = await records.requests()
  expect(new Set(requests.map(({ id }) => id)).size).toBe(requests.length)

  const lastOf = async () => {
    const sessions = Object.values(Object.groupBy(await records.connections(), ({ sessionId }) => sessionId))
    return sessions.map((events = []) => events.map(({ type, reason }) => `${type} ${reason ?? ''}`.trim()))
  }
  // Of the three clients the second is there still.
  const whole = [['connect', 'disconnect edge_lost'], ['connect'], ['connect', 'disconnect client_disconnected']]
  await vi.waitFor(async () => expect(await lastOf()).toEqual(whole), LOST_WITHIN)
  // By now it was looked for changes that nobody has told of.
  expect((await records.entries()).filter(({ via }) => via === 'unknown')).toEqual([])
})

test('a journal that is made anew is told who is connected, though nobody comes anew', async () => {
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
  await vi.waitFor(async () => expect(await known()).toEqual({ connected: true, sessions: 1, events: ['connect'] }), WITHIN)
})
