import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratch } from '../postgresql/scratch.ts'
import { unpackedPackages } from '../debian-packages.ts'
import { newKey } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'

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
