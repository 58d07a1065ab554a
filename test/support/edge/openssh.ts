import { type ChildProcess, spawn, execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratch } from '../postgresql/disks.ts'
import { unpackedPackages } from '../debian-packages.ts'
import { newKey } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'
import { knownHostsFile } from '../../../crds/formats/ssh-public-key.ts'
import type { Site } from './visitor.ts'

/** Packages of a newer Debian suite, with the libraries that they need. */
const [CURRENT_SUITE, ...CURRENT_OPENSSH] = [
  'sid',
  ...[
    'openssh-client',
    'libc6',
    'libedit2',
    'libselinux1',
    'libssl3t64',
    'zlib1g',
    'libtinfo6',
    'libpcre2-8-0',
    'libbsd0',
    'libmd0',
    'libzstd1',
  ],
] as const

/** Returns the command of the newest OpenSSH of Debian, beside the machine's. @throws Error when it is not available */
export const currentOpenSsh = async (): Promise<readonly string[]> =>
  (await unpackedPackages(CURRENT_SUITE, CURRENT_OPENSSH)).command('usr/bin/ssh')

/** Running program and its output. */
export interface Running extends AsyncDisposable {
  readonly said: () => string
  readonly exited: Promise<number | null>
  readonly child: ChildProcess
}

/** Runs a program until it is disposed of. */
export function running(command: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return {
    said: () => said,
    exited,
    child,
    async [Symbol.asyncDispose]() {
      // Kills the program with all processes that it has started.
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
      await exited
    },
  }
}

/** User of OpenSSH with a key, who knows the edge's host keys. */
export interface SshUser extends AsyncDisposable {
  readonly publicKey: string
  /** File with the private key, in the format of OpenSSH. */
  readonly identity: string
  readonly directory: string
  /** Options of OpenSSH: log in with the key, verify the host key, and exit when the forward is rejected. */
  readonly options: readonly string[]
}

/** Creates a user with a new key. */
export async function sshUser({ knownHosts }: Pick<WholeEdge, 'knownHosts'>): Promise<SshUser> {
  const directory = await mkdtemp(join(await scratch(), 'ssh-user-'))
  const { privateKey, publicKey } = newKey()
  const [identity, hosts] = [join(directory, 'key'), join(directory, 'known_hosts')]
  await writeFile(identity, privateKey)
  await chmod(identity, 0o600)
  await writeFile(hosts, knownHosts)
  const settings = [
    ...['BatchMode=yes', 'IdentitiesOnly=yes', 'IdentityAgent=none', `IdentityFile=${identity}`, 'StrictHostKeyChecking=yes'],
    ...[`UserKnownHostsFile=${hosts}`, 'ExitOnForwardFailure=yes', 'ServerAliveInterval=5'],
  ]
  return {
    ...{ publicKey, identity, directory },
    options: ['-F', 'none', '-N', ...settings.flatMap((setting) => ['-o', setting])],
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  }
}

/** Returns the arguments that forward a tunnel to a port of this machine, for OpenSSH and compatible clients. */
export const forwardTo = (edge: Pick<WholeEdge, 'ports'>, hostname: string, port: number): readonly string[] => [
  ...['-p', String(edge.ports.ssh), '-R', `${hostname}:80:127.0.0.1:${port}`, `${hostname}@127.0.0.1`],
]

const run = promisify(execFile)

/** User with OpenSSH's client and a key, who knows the host keys in a tunnel's record. */
export interface Person extends AsyncDisposable {
  readonly publicKey: string
  /** Connects a port of this machine to a tunnel, with the key or with a password. The client ends with the user's disposal. */
  forward(to: Site, localPort: number, password?: string): Promise<Client>
}

/** Running client of OpenSSH. */
export interface Client extends AsyncDisposable {
  /** Returns the terminal output so far. */
  readonly said: () => string
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>
}

/** Creates a user with a new key. */
export async function person(): Promise<Person> {
  const dir = await mkdtemp(join(await scratch(), 'person-'))
  const [key, askpass] = [join(dir, 'key'), join(dir, 'askpass')]
  let clientCount = 0
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'person', '-f', key])
  await writeFile(askpass, '#!/bin/sh\nprintf "%s\\n" "$PASSWORD"\n', { mode: 0o700 })
  const clients = new AsyncDisposableStack()

  async function forward({ hostname, endpoint }: Site, localPort: number, password?: string): Promise<Client> {
    const { sshHost, sshPort, hostKeys } = endpoint
    // A file of its own, since another client may read its file at the same time.
    const knownHosts = join(dir, `known_hosts-${clientCount++}`)
    await writeFile(knownHosts, knownHostsFile(hostKeys, sshHost, sshPort))
    const how = password === undefined ? [`IdentityFile=${key}`, 'BatchMode=yes'] : ['PreferredAuthentications=password']
    const options = [
      ...['IdentitiesOnly=yes', 'IdentityAgent=none', 'StrictHostKeyChecking=yes', 'ExitOnForwardFailure=yes', ...how],
      `UserKnownHostsFile=${knownHosts}`,
    ].flatMap((option) => ['-o', option])
    const to = ['-p', String(sshPort), '-R', `${hostname}:80:127.0.0.1:${localPort}`, `${hostname}@${sshHost}`]
    const child = spawn('ssh', ['-F', 'none', '-N', ...options, ...to], {
      env: { PATH: process.env.PATH, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', PASSWORD: password },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    return clients.use({
      said: () => text,
      exited,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        await exited
      },
    })
  }

  return {
    publicKey: (await readFile(`${key}.pub`, 'utf8')).trim(),
    forward,
    async [Symbol.asyncDispose]() {
      await clients.disposeAsync()
      await rm(dir, { recursive: true })
    },
  }
}

/** Settings of a program `ssh` for PATH. */
export interface SshForPath {
  /** Options such as `IdentityFile=/path/to/key`. They precede those of a command, and so take precedence (ssh_config(5)). */
  readonly options: readonly string[]
  /** Local port that replaces port 3000 of a command, which may be in use on this machine. */
  readonly localPort: number
}

/**
 * Creates a program `ssh` in a directory for PATH, so that commands from the documentation run unchanged. It runs the machine's
 * own client with a given configuration in place of the user's ~/.ssh.
 * @returns its path
 */
export async function writeSsh(directory: string, { options, localPort }: SshForPath): Promise<string> {
  const { stdout } = await run('sh', ['-c', 'command -v ssh'])
  const all = ['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', ...options]
  const program = join(directory, 'ssh')
  const script = [
    '#!/bin/sh',
    'for word do',
    '  shift',
    `  case $word in *localhost:3000) word=\${word%3000}${localPort} ;; esac`,
    '  set -- "$@" "$word"',
    'done',
    `exec ${stdout.trim()} -F none ${all.map((option) => `-o ${quoted(option)}`).join(' ')} "$@"`,
    '',
  ]
  await writeFile(program, script.join('\n'), { mode: 0o755 })
  return program
}

const quoted = (word: string): string => `'${word.replaceAll(`'`, `'\\''`)}'`
