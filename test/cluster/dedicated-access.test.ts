import { connect } from 'node:net'
import type pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { labels } from '../../crds/names.ts'
import type { EngineAdmin } from '../../operator/engines/engine.ts'
import { postgresql } from '../../operator/engines/postgresql/postgresql.ts'
import { NetworkPolicy, Pod, Service } from '../../operator/kubernetes/kinds.ts'
import { adminCredentials } from '../../operator/server/credentials.ts'
import { keyOf } from '../../store/port.ts'
import { openServerBench, type ServerBench, visit } from './server-bench.ts'
import { LATER } from '../support/patience.ts'

const IN_FORCE = { timeout: 120_000, interval: 200 }
const TENANT = { name: 'tenant', password: 'password-of-tenant' }
const OPEN = { organization: 'acme', isPrivate: false }
const REFUSED = expect.stringMatching(/^(timeout|ECONNREFUSED)$/) as string
/** Range of documentation (RFC 5737), from which no test connects. */
const ELSEWHERE = '203.0.113.0/24'

let bench: ServerBench
let server: DatabaseServer
let admin: EngineAdmin
/** Namespaces of the server's organization and of another one. */
let own: string
let other: string
/** Address of this machine as the server sees it. */
let here: string

beforeAll(async () => {
  bench = await openServerBench()
  server = await bench.addServer({ access: OPEN })
  own = await bench.addNamespace({ [labels.organization]: 'acme' })
  other = await bench.addNamespace({ [labels.organization]: 'other' })
  const state = await bench.running(server)
  admin = postgresql.admin({ ...state.admin, ...(await adminCredentials(bench.store, server)) })
  await admin.harden()
  await admin.admit(undefined)
  await admin.claim(TENANT, { connections: 12 }, {})
  const client = await asTenant()
  const { rows } = await client.query<{ address: string }>('SELECT host(inet_client_addr()) AS address')
  here = rows[0]?.address ?? ''
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

const asTenant = (): Promise<pg.Client> =>
  bench.connect(server, {
    ...{ user: TENANT.name, password: TENANT.password, database: TENANT.name },
    ssl: { ca: bench.ca.certificate },
  })

/** Changes `spec.access`, and applies all of it that this machine can apply. */
async function restrict(access: Partial<NonNullable<DatabaseServer['spec']['access']>>): Promise<void> {
  const patch = { spec: { access: { sources: null, ...OPEN, ...access } } }
  server = await bench.store.mergePatch(DatabaseServer, keyOf(server), patch)
  await bench.ensure(server)
}

/** Waits until the engine has its new rules. */
async function inForce(sources: readonly string[] | undefined): Promise<void> {
  await bench.running(server)
  await expect.poll(() => admin.admit(sources).then(() => 'done', String), LATER).toBe('done')
}

/** All ways to the server from a pod. */
async function ways() {
  const pod = await bench.store.get(Pod, { ...keyOf(server), name: `${server.metadata.name}-0` })
  const service = await bench.store.get(Service, keyOf(server))
  return [
    { host: pod?.status?.podIP ?? '', port: 5432 },
    { host: service?.spec.clusterIP ?? '', port: 5432 },
  ]
}

const visitFrom = async (namespace: string): Promise<readonly string[]> =>
  visit(bench.store.client, { namespace, image: inject('cluster').image }, await ways())

test.each([
  { name: 'without rules', access: {} },
  { name: 'with a rule for all pods', access: { sources: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] } },
  { name: 'with rules', access: { sources: [ELSEWHERE] } },
  { name: 'without a source', access: { sources: [] } },
  { name: 'when private', access: { isPrivate: true, sources: [] } },
])('only pods of the organization connect, $name', async ({ access }) => {
  await restrict(access)
  // The nodes apply a policy, and learn of a pod, a moment later.
  await expect.poll(() => visitFrom(own), IN_FORCE).toEqual(['open', 'open'])
  await expect.poll(() => visitFrom(other), IN_FORCE).toEqual([REFUSED, REFUSED])
})

test('a client outside is admitted only by a rule, and a change neither restarts the server nor ends other sessions', async () => {
  await restrict({ sources: [`${here}/32`, ELSEWHERE] })
  await inForce([`${here}/32`, ELSEWHERE])
  const session = await asTenant()
  const before = await bench.store.get(Pod, { ...keyOf(server), name: `${server.metadata.name}-0` })
  await restrict({ sources: [`${here}/32`] })
  await inForce([`${here}/32`])
  await session.query('SELECT 1')
  const after = await bench.store.get(Pod, { ...keyOf(server), name: `${server.metadata.name}-0` })
  expect(after?.metadata.uid).toBe(before?.metadata.uid)
  const { host, port } = await bench.running(server)
  await restrict({ sources: [ELSEWHERE] })
  await expect.poll(() => reachable(host, port), LATER).toBe(false)
})

test('a private server has no port outside the cluster, and its internal host', async () => {
  await restrict({})
  const { host, port, internalHost } = await bench.running(server)
  expect(internalHost).toBe(`${server.metadata.name}.${bench.namespace}.svc.cluster.local`)
  await restrict({ isPrivate: true, sources: [] })
  expect((await bench.store.get(Service, keyOf(server)))?.spec).toMatchObject({ type: 'ClusterIP' })
  const policy = await bench.store.get(NetworkPolicy, keyOf(server))
  expect(JSON.stringify(policy?.spec)).not.toContain('ipBlock')
  await expect.poll(() => reachable(host, port), LATER).toBe(false)
})

/** Whether a connection from this machine succeeds within 2 s. */
function reachable(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 })
    const end = (result: boolean) => {
      socket.destroy()
      resolve(result)
    }
    socket
      .once('connect', () => end(true))
      .once('timeout', () => end(false))
      .once('error', () => end(false))
  })
}
