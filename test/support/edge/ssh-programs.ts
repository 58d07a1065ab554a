import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratch } from '../postgresql/scratch.ts'
import { unpackedPackages } from '../debian-packages.ts'
import { newKey } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'

/** Of a suite that is years ahead of the stable ones, with the libraries that it needs. */
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

/** The newest OpenSSH that Debian has, beside the machine's. @throws Error when it cannot be had */
export const currentOpenSsh = async (): Promise<readonly string[]> =>
  (await unpackedPackages(CURRENT_SUITE, CURRENT_OPENSSH)).command('usr/bin/ssh')

/** One program that runs, and what it says. */
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
      // With all that it has started itself.
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
      await exited
    },
  }
}

/** Somebody who has a key, and knows the edge's. */
export interface SshUser extends AsyncDisposable {
  readonly publicKey: string
  /** File with the private key, as OpenSSH writes it. */
  readonly identity: string
  readonly directory: string
  /** What OpenSSH is told: log in by the key, check the host's, and end when the forward is refused. */
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

/** How a tunnel is forwarded to a port of this machine, for OpenSSH and those who take its arguments. */
export const forwardTo = (edge: Pick<WholeEdge, 'ports'>, hostname: string, port: number): readonly string[] => [
  ...['-p', String(edge.ports.ssh), '-R', `${hostname}:80:127.0.0.1:${port}`, `${hostname}@127.0.0.1`],
]
