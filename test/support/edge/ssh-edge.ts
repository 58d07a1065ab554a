import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { addressList } from '../../../crds/formats/address-list.ts'
import { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { type EdgeClock, systemClock } from '../../../edge/clock.ts'
import type { LoginRoutes, Route, RoutedDatabase, RoutedPassword } from '../../../edge/route.ts'
import { KeyIndex } from '../../../edge/key-index.ts'
import { createSessions } from '../../../edge/sessions.ts'
import { knownHostsFile } from '../../../crds/formats/ssh-public-key.ts'
import { generateHostKeys, parseHostKey } from '../../../edge/ssh/host-keys.ts'
import { DEFAULT_SSH_LIMITS, type SshLimits } from '../../../edge/ssh/limits.ts'
import { createSshServer } from '../../../edge/ssh/server.ts'
import type { ConnectionRecord } from '../../../journal/port.ts'

const DOMAIN = 'tunnel.localhost'
/** Port in the URLs of tunnels. */
export const HTTPS_PORT = 28_443
const hostKeys = generateHostKeys()

type Config = Parameters<typeof TunnelConfig.parse>[0]

export const freshHostname = () => randomBytes(8).toString('hex')

/** Creates routes that a test may change. */
export function routesInMemory() {
  const routes = new Map<string, Route>()
  const keys = new KeyIndex()
  const listeners = new Set<(hostname: string) => void>()
  const tell = (hostname: string) => {
    for (const listener of listeners) listener(hostname)
  }
  const port: LoginRoutes = {
    domain: DOMAIN,
    get: (hostname) => routes.get(hostname),
    ofPassword(sha256) {
      const has = ({ passwords }: Route) => passwords.some((password) => password.sha256 === sha256)
      const [route, ...others] = [...routes.values()].filter(has)
      return others.length > 0 ? undefined : route
    },
    ofKey: ({ type, blob }, most) => keys.of(type, blob, most).flatMap((hostname) => routes.get(hostname) ?? []),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return {
    port,
    set(hostname: string, config: Config, passwords: readonly RoutedPassword[] = [], database?: RoutedDatabase): Route {
      const host = `${hostname}.${DOMAIN}`
      const parsed = TunnelConfig.parse(config)
      const route: Route = {
        ...{
          id: `uid-${hostname}`,
          namespace: 'acme--prod',
          name: 'web',
          hostname,
          host,
          url: `https://${host}`,
          config: parsed,
          passwords,
          database,
        },
        ingress: addressList(parsed.ingressIPWhitelist),
        sshSources: addressList(parsed.sshIPWhitelist),
      }
      keys.replace(hostname, routes.get(hostname)?.config.authorizedKeys ?? [], parsed.authorizedKeys)
      routes.set(hostname, route)
      tell(hostname)
      return route
    },
    delete(hostname: string): void {
      keys.replace(hostname, routes.get(hostname)?.config.authorizedKeys ?? [], [])
      routes.delete(hostname)
      tell(hostname)
    },
  }
}

/** Creates a temporary password of a tunnel, by default in the form that the API issues. */
export function temporaryPassword(
  lifetimeMs = 60_000,
  password = `mt_${randomBytes(16).toString('hex')}`,
): { readonly password: string; readonly routed: RoutedPassword } {
  const sha256 = createHash('sha256').update(password).digest('hex')
  return { password, routed: { id: `pw-${sha256.slice(0, 8)}`, sha256, expiresAt: Date.now() + lifetimeMs } }
}

/** Starts the SSH side of an edge on a free port, with a user's key and a backend. */
export async function startSshEdge(
  limits: Partial<SshLimits> = {},
  trusted: readonly string[] = [],
  clock: EdgeClock = systemClock,
) {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-ssh-'))
  const routes = routesInMemory()
  const sessions = createSessions()
  const records: ConnectionRecord[] = []
  const registry = new Registry()
  const server = createSshServer({
    edge: 'test',
    ...{ hostKeys, routes: routes.port, sessions, registry },
    address: () => ({ sshHost: '127.0.0.1', sshPort: port, httpsPort: HTTPS_PORT }),
    journal: {
      connection(record) {
        records.push(record)
        return Promise.resolve()
      },
    },
    limits: { ...DEFAULT_SSH_LIMITS, ...limits },
    trusted: trusted.length > 0 ? addressList(trusted) : undefined,
    log: pino({ level: 'silent' }),
    ...clock,
  })
  const port = await server.listen('127.0.0.1', 0)
  const file = (name: string) => join(directory, name)
  const lines = hostKeys.map((key) => parseHostKey(key).publicLine)
  writeFileSync(file('known_hosts'), knownHostsFile(lines, '127.0.0.1', port))

  function makeKey(name: string, type = 'ed25519', ...options: string[]): string {
    execFileSync('ssh-keygen', ['-q', '-t', type, ...options, '-N', '', '-C', 'test', '-f', file(name)])
    return readFileSync(file(`${name}.pub`), 'utf8').trim()
  }

  const children = new Set<SshClient>()

  /** Starts the machine's ssh client. */
  function ssh({ user, args = [], key = 'id', password, via = port, command }: SshOptions): SshClient {
    const askpass = file('askpass')
    writeFileSync(askpass, '#!/bin/sh\nprintf "%s\\n" "$MOORING_TEST_PASSWORD"\n', { mode: 0o700 })
    const how = password === undefined ? ['BatchMode=yes', `IdentityFile=${file(key)}`] : ['PreferredAuthentications=password']
    const options = [
      ...how,
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      'StrictHostKeyChecking=yes',
      `UserKnownHostsFile=${file('known_hosts')}`,
      ...(via === port ? [] : [`HostKeyAlias=[127.0.0.1]:${port}`]),
    ]
    const child = spawn(
      'ssh',
      [
        '-F',
        'none',
        ...options.flatMap((option) => ['-o', option]),
        // ssh takes the first value of an option.
        ...args,
        '-o',
        'ExitOnForwardFailure=yes',
        '-p',
        String(via),
        `${user}@127.0.0.1`,
        ...(command === undefined ? [] : [command]),
      ],
      {
        env: {
          PATH: process.env.PATH,
          SSH_ASKPASS: askpass,
          SSH_ASKPASS_REQUIRE: 'force',
          MOORING_TEST_PASSWORD: password ?? '',
        },
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    )
    // A client that has ended reads no more of what is typed.
    child.stdin.on('error', () => undefined)
    const output = { text: '', stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (data: Buffer) => {
        output.text += data.toString()
        output[stream] += data.toString()
      })
    }
    const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
    const client = {
      output,
      exited,
      type: (text: string) => void child.stdin.write(text),
      endInput: () => void child.stdin.end(),
      kill: (signal: NodeJS.Signals = 'SIGTERM') => child.kill(signal),
    }
    children.add(client)
    void exited.then(() => children.delete(client))
    return client
  }

  return {
    ...{ port, routes, sessions, records, registry, server, makeKey, ssh, file },
    publicKey: makeKey('id'),
    async [Symbol.asyncDispose]() {
      const ends = [...children].map((child) => {
        child.kill('SIGKILL')
        return child.exited
      })
      await Promise.all(ends)
      await server.close()
      rmSync(directory, { recursive: true })
    },
  }
}

interface SshOptions {
  readonly user: string
  readonly args?: readonly string[]
  /** Name of a generated key. */
  readonly key?: string
  readonly password?: string
  /** Port of this machine that forwards to the edge. */
  readonly via?: number
  /** Command to run on the server. */
  readonly command?: string
}

export interface SshClient {
  /** Output of the client: all of it, and by stdout and stderr. */
  readonly output: { readonly text: string; readonly stdout: string; readonly stderr: string }
  readonly exited: Promise<number | null>
  /** Types a text into the client's terminal. */
  type(text: string): void
  /** Standard input is empty, as for a service. */
  endInput(): void
  kill(signal?: NodeJS.Signals): void
}

/** Starts a TCP server on a free port of loopback. */
export async function startBackend(serve: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // A killed client resets its connections.
    socket.on('error', () => socket.destroy())
    serve(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
