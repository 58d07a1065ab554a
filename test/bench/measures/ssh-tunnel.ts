import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { databasePath, asInstance } from '../../support/api/databases.ts'
import type { Database, Instance } from '../../support/api/answers.ts'
import { databaseUser } from '../../support/dedicated/ssh-tunnel.ts'
import { startMooring } from '../../support/deployment/mooring.ts'
import { sshUser, type SshUser } from '../../support/edge/openssh.ts'
import { startWholeEdge } from '../../support/edge/whole-edge.ts'
import { freePort } from '../../support/free-port.ts'
import { login } from '../../support/postgresql/sql.ts'
import { type Figure, type Finding, finding, type Measure } from '../measure.ts'
import { until } from '../metrics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { median, ratio, timed } from '../statistics.ts'
import { LARGE_BYTES, startOrigin } from '../tunnel/nginx.ts'
import { startSshd } from '../tunnel/pair.ts'
import { child, listening, program } from '../tunnel/programs.ts'
import { atLeast } from '../tunnel/rounds.ts'
import { call } from './dedicated.ts'

const run = promisify(execFile)
const ROUNDS = 15
const BLOCK = 5
const QUERIES = 200
const MIB = 1024 * 1024
const ENGINE = 'postgresql-15.4.0'
/** Usual port of the engine, which clients of an edge name. */
const USUAL = 5432

/** Measures both sides in turn, in alternating order. */
async function inTurn<S>(sides: readonly [S, S], take: (side: S) => Promise<number>): Promise<readonly [number[], number[]]> {
  const taken: readonly [number[], number[]] = [[], []]
  for (const side of sides) await take(side)
  for (let round = 0; round < ROUNDS; round++) {
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) taken[index].push(await take(sides[index]))
  }
  return taken
}

function compared([one, other]: readonly [number[], number[]]): Figure {
  const { median: value, low, high } = ratio(one, other, BLOCK)
  return { value, unit: '×', digits: 2, spread: `${low.toFixed(2)}–${high.toFixed(2)}` }
}

const beside = ([one, other]: readonly [number[], number[]], unit: string, what: string, digits = 2): Figure => ({
  ...{ value: median(one), unit, digits },
  spread: `${what} ${median(other).toFixed(digits)}`,
})

async function queries(): Promise<readonly Finding[]> {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: [...UNLIMITED, '--compatible-motors'] })
  await using user = await databaseUser()
  const { region } = mooring.ready
  const body = {
    ...{ name: 'bench', organization: 'default', namespace: 'default', engine: ENGINE, region, plan: 'small' },
    sshTunnel: { authorizedKeys: [user.publicKey] },
  }
  const path = databasePath((await call(mooring, 'POST', '/v1/databases', { body })).data.database)
  const read = async (): Promise<Database> => (await call(mooring, 'GET', path)).data.database
  await until('running', async () => (await read()).connection?.ssh !== undefined, { everyMs: 100 })
  const database = await read()
  await using tunnel = await user.open(database)
  const direct = asInstance(database)
  const sides: readonly [Instance, Instance] = [{ ...direct, host: '127.0.0.1', port: tunnel.port }, direct]
  const connects = await inTurn(sides, (side) =>
    timed(async () => {
      const client = await login(side)
      await client.query('SELECT 1')
      await client.end()
    }),
  )
  const selects = await inTurn(sides, async (side) => {
    const client = await login(side)
    const all = await timed(async () => {
      for (let count = 0; count < QUERIES; count++) await client.query('SELECT 1')
    })
    await client.end()
    return all / QUERIES
  })
  return [
    finding('new connection to the result of SELECT 1, against direct', compared(connects), 2),
    finding('new connection to the result of SELECT 1', beside(connects, 'ms', 'direct')),
    finding('SELECT 1 on an open connection, against direct', compared(selects)),
    finding('SELECT 1 on an open connection', beside(selects, 'ms', 'direct')),
  ]
}

/** Downloads the large file once. @returns the rate in MiB a second */
async function download(port: number): Promise<number> {
  const url = `http://127.0.0.1:${port}/large`
  const args = ['--silent', '--output', '/dev/null', '--write-out', '%{time_total} %{size_download}', url]
  const [seconds = 0, bytes = 0] = (await run('curl', args)).stdout.split(' ').map(Number)
  if (bytes !== LARGE_BYTES) throw new Error(`port ${port} sent ${bytes} of ${LARGE_BYTES} bytes`)
  return bytes / MIB / seconds
}

const withoutHostKey = ({ options }: SshUser): readonly string[] => [
  ...options.map((option) => (option.startsWith('StrictHostKeyChecking') ? 'StrictHostKeyChecking=no' : option)),
  ...['-o', 'UserKnownHostsFile=/dev/null'],
]

async function bulk(): Promise<readonly Finding[]> {
  await using stack = new AsyncDisposableStack()
  const directory = stack.use(await temporaryDirectory()).path
  await chmod(directory, 0o755)
  const nginx = await program('nginx', ['nginx', 'libpcre2-8-0', 'libssl3', 'zlib1g', 'libcrypt1'])
  const [origin, ofEdge, ofPeer] = [await freePort(), await freePort(), await freePort()]
  stack.use(await startOrigin(nginx, join(directory, 'origin'), origin))
  const edge = stack.use(await startWholeEdge({ folder: directory }))
  const user = stack.use(await sshUser(edge))
  const sshd = await startSshd(join(directory, 'sshd'), user)
  stack.use(sshd.process)
  const hostname = '0123456789abcdef'
  const server = { host: '127.0.0.1', port: origin }
  await edge.set(hostname, { authorizedKeys: [user.publicKey] }, [], { port: USUAL, server })
  const toEdge = ['-p', String(edge.ports.ssh), '-L', `${ofEdge}:db:${USUAL}`, `${hostname}@127.0.0.1`]
  const toPeer = ['-p', String(sshd.port), '-L', `${ofPeer}:127.0.0.1:${origin}`, 'nobody@127.0.0.1']
  const clients = [child(['ssh', ...user.options, ...toEdge]), child(['ssh', ...withoutHostKey(user), ...toPeer])]
  for (const client of clients) stack.use(client)
  for (const [index, port] of [ofEdge, ofPeer].entries()) await listening(port, clients[index] ?? sshd.process)
  const rates = await inTurn([ofEdge, ofPeer], download)
  return [
    atLeast('64 MiB download against sshd', compared(rates), 1.2),
    finding('64 MiB download', beside(rates, 'MiB/s', 'sshd', 0)),
  ]
}

export const sshTunnel: Measure = {
  name: 'ssh-tunnel',
  method: `OpenSSH's client forwards a local port (\`ssh -L\`) to a dedicated PostgreSQL of embedded Mooring, and a driver connects and sends SELECT 1 through it and directly, in turn: ${ROUNDS} rounds, of ${QUERIES} queries on an open connection. Then curl downloads 64 MiB from an nginx in place of the database server, through an edge in its own process and through OpenSSH's server, ${ROUNDS} times in turn. Ratios compare medians in blocks of ${BLOCK} rounds.`,
  run: async () => [...(await queries()), ...(await bulk())],
}
