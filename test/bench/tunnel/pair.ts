import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, copyFile, cp, mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forwardTo, sshUser, type SshUser } from '../../support/edge/openssh.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freePort } from '../../support/free-port.ts'
import { cpuSeconds, descendants } from '../usage.ts'
import { temporaryDirectory } from '../setup.ts'
import { startFront, startOrigin } from './nginx.ts'
import { type Child, child, listening, type Program, program } from './programs.ts'

const NOBODY = 65_534
const PATIENCE_MS = 20_000

/** One of two paths to the same backend: the edge, or sshd behind nginx. */
export interface Side {
  readonly name: 'edge' | 'peer'
  readonly httpPort: number
  readonly httpsPort: number
  /** Host names of its tunnels. */
  readonly hosts: readonly string[]
  /** Returns the processor time of its servers in seconds, without its ssh clients. */
  cpu(): Promise<number>
  /** Starts another ssh client. Resolves with the milliseconds until its tunnel responds. */
  connectAnew(): Promise<number>
}

/** Both paths, each with the same number of tunnels and one ssh client for each, to one backend. */
export interface Pair extends AsyncDisposable {
  readonly edge: Side
  readonly peer: Side
  readonly wholeEdge: WholeEdge
  readonly user: SshUser
  readonly originPort: number
}

/** Sends requests until the tunnel responds with 200. @throws Error after 20 s */
export async function answers(port: number, host: string, what: () => string): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await statusOf(port, host)
    if (answer === 200) return
    if (performance.now() > end) throw new Error(`${host} answers ${answer}: ${what()}`)
    await delay(1)
  }
}

function statusOf(port: number, host: string): Promise<number> {
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/', headers: { Host: host }, agent: false }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    asked.on('error', () => resolve(0))
    asked.end()
  })
}

export async function startPair(tunnels = 1): Promise<Pair> {
  const stack = new AsyncDisposableStack()
  try {
    const directory = stack.use(await temporaryDirectory()).path
    await chmod(directory, 0o755)
    const nginx = await program('nginx', ['nginx', 'libpcre2-8-0', 'libssl3', 'zlib1g', 'libcrypt1'])
    const originPort = await freePort()
    stack.use(await startOrigin(nginx, join(directory, 'origin'), originPort))
    const wholeEdge = stack.use(await startWholeEdge({ folder: directory }))
    const user = stack.use(await sshUser(wholeEdge))
    const own = { directory, nginx, originPort, tunnels, user, stack }
    const edge = await startEdgeSide(wholeEdge, own)
    const peer = await startPeerSide(own)
    return { edge, peer, wholeEdge, user, originPort, [Symbol.asyncDispose]: () => stack.disposeAsync() }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

interface Own {
  readonly directory: string
  readonly nginx: Program
  readonly originPort: number
  readonly tunnels: number
  readonly user: SshUser
  readonly stack: AsyncDisposableStack
}

async function startEdgeSide(edge: WholeEdge, { originPort, tunnels, user, stack }: Own): Promise<Side> {
  const { http: httpPort, https: httpsPort } = edge.ports
  let made = 0
  async function connect(on: AsyncDisposableStack): Promise<{ host: string; ms: number }> {
    const hostname = (++made).toString(16).padStart(16, '0')
    await edge.set(hostname, { authorizedKeys: [user.publicKey] })
    const host = `${hostname}.${edge.domain}`
    const start = performance.now()
    const client = on.use(child(['ssh', ...user.options, ...forwardTo(edge, hostname, originPort)]))
    await answers(httpPort, host, client.said)
    return { host, ms: performance.now() - start }
  }
  const hosts: string[] = []
  for (let count = 0; count < tunnels; count++) hosts.push((await connect(stack)).host)
  return {
    ...{ name: 'edge', httpPort, httpsPort, hosts },
    cpu: () => cpuSeconds(edge.pid),
    async connectAnew() {
      await using once = new AsyncDisposableStack()
      return (await connect(once)).ms
    },
  }
}

async function startPeerSide({ directory, nginx, originPort, tunnels, user, stack }: Own): Promise<Side> {
  const sshd = await startSshd(join(directory, 'sshd'), user)
  stack.use(sshd.process)
  const ports = await Promise.all(Array.from({ length: tunnels + 1 }, freePort))
  const [httpPort, httpsPort] = [await freePort(), await freePort()]
  const [key, cert] = ['key', 'cert'].map((name) => join(directory, name)) as [string, string]
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', ...made, '-subj', '/CN=peer'], { stdio: 'ignore' })
  const front = stack.use(
    await startFront(nginx, join(directory, 'front'), {
      http: httpPort,
      https: httpsPort,
      tunnels: ports,
      certificate: { key, cert },
    }),
  )

  async function connect(index: number, on: AsyncDisposableStack): Promise<number> {
    const options = user.options.map((option) =>
      option.startsWith('StrictHostKeyChecking') ? 'StrictHostKeyChecking=no' : option,
    )
    const start = performance.now()
    const forward = ['-p', String(sshd.port), '-R', `127.0.0.1:${ports[index] ?? 0}:127.0.0.1:${originPort}`, 'nobody@127.0.0.1']
    const client = on.use(child(['ssh', ...options, '-o', 'UserKnownHostsFile=/dev/null', ...forward]))
    await answers(httpPort, `tunnel${index}.test`, () => client.said() + sshd.process.said())
    return performance.now() - start
  }
  for (let index = 0; index < tunnels; index++) await connect(index, stack)
  return {
    ...{ name: 'peer', httpPort, httpsPort, hosts: ports.slice(0, tunnels).map((_, index) => `tunnel${index}.test`) },
    async cpu() {
      const pids = await Promise.all([front, sshd.process].map(async ({ pid }) => [pid, ...(await descendants(pid))]))
      const used = await Promise.all(pids.flat().map(cpuSeconds))
      return used.reduce((sum, seconds) => sum + seconds, 0)
    },
    async connectAnew() {
      await using once = new AsyncDisposableStack()
      return await connect(tunnels, once)
    },
  }
}

/** Starts OpenSSH's server for one user, `nobody`. It does not run as root, which would require an installation. */
export async function startSshd(directory: string, user: SshUser): Promise<{ process: Child; port: number }> {
  const found = await program('sshd', ['openssh-server', 'libwrap0', 'libnsl2', 'libtirpc3'])
  const port = await freePort()
  await mkdir(directory, { mode: 0o755 })
  const inside = (name: string) => join(directory, name)
  // sshd executes itself for each client, from a directory that every user may read.
  await copyFile(found.path, inside('sshd'))
  await chmod(inside('sshd'), 0o755)
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', inside('host_key')])
  await writeFile(inside('authorized_keys'), `${user.publicKey}\n`, { mode: 0o644 })
  await writeFile(
    inside('config'),
    [
      ...[
        `Port ${port}`,
        'ListenAddress 127.0.0.1',
        `HostKey ${inside('host_key')}`,
        `PidFile none`,
        'UsePAM yes',
        'StrictModes no',
      ],
      ...[
        `AuthorizedKeysFile ${inside('authorized_keys')}`,
        'PasswordAuthentication no',
        'AllowTcpForwarding yes',
        'UseDNS no',
        'MaxStartups 100',
      ],
    ].join('\n'),
    { mode: 0o644 },
  )
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(inside('host_key'), NOBODY, NOBODY)
  const environment = await readable(found, directory)
  const started = child([inside('sshd'), '-D', '-e', '-f', inside('config')], {
    env: environment,
    ...(isRoot && { uid: NOBODY }),
  })
  await listening(port, started)
  return { process: started, port }
}

/** Copies unpacked libraries out of the cache, which is in a home directory that other users cannot read. */
async function readable({ env }: Program, directory: string): Promise<Readonly<Record<string, string>>> {
  const copy = join(directory, 'lib')
  for (const from of (env.LD_LIBRARY_PATH ?? '').split(delimiter)) {
    if (existsSync(from)) await cp(from, copy, { recursive: true, verbatimSymlinks: true })
  }
  return { LD_LIBRARY_PATH: copy }
}
