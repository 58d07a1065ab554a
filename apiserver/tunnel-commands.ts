import { knownHostsLines } from '../crds/known-hosts.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'

/** What a command that connects a tunnel is made of. */
export interface Connecting {
  readonly hostname: string
  readonly endpoint: TunnelEndpoint
  readonly config: Tunnel['spec']['config']
}

/** Commands to copy (surface, section 5: `connect`). They forward to port 3000 of the machine they are run on. */
export interface ConnectCommands {
  readonly ssh: string
  /** Connects again whenever the connection ends. */
  readonly loop: string
  readonly autossh: string
  /** A unit for `~/.config/systemd/user/`. */
  readonly systemd: string
  /** Lines for `known_hosts`. */
  readonly knownHosts: readonly string[]
}

const LOCAL = 'localhost:3000'
/** Between tries: one that is refused for ever must not use up what its address may try in a minute, which others share. */
const AGAIN_SECONDS = 4
/**
 * Stock ssh neither says that a forward was refused nor notices a silent loss, unless told to. A loop and a service have nobody to ask about
 * a host key that they see for the first time; one that has changed since ends them all the same.
 */
const OPTIONS = [
  ...['ExitOnForwardFailure=yes', 'ServerAliveInterval=10', 'ServerAliveCountMax=3'],
  'StrictHostKeyChecking=accept-new',
].map((option) => `-o ${option}`)

function argumentsOf({ hostname, endpoint, config }: Connecting): string {
  const { sshHost, ports } = endpoint.spec
  // Without a target of its own the client speaks SOCKS, and the edge names the target (ssh(1), -R).
  const forward = config.target === undefined ? `${hostname}:80:${LOCAL}` : `${hostname}:80`
  return ['-N', ...OPTIONS, `-p ${ports.ssh}`, `-R ${forward}`, `${hostname}@${sshHost}`].join(' ')
}

/** The plain command: it ends with the connection. */
export function sshCommandOf(about: Connecting): string {
  return `ssh ${argumentsOf(about)}`
}

export function connectCommands(about: Connecting): ConnectCommands {
  const ssh = sshCommandOf(about)
  const { endpoint, hostname } = about
  const { sshHost, ports } = endpoint.spec
  return {
    ssh,
    loop: `while true; do ${ssh}; sleep ${AGAIN_SECONDS}; done`,
    autossh: `autossh -M 0 ${argumentsOf(about)}`,
    systemd: [
      '[Unit]',
      `Description=Tunnel ${hostname}`,
      'After=network-online.target',
      '',
      '[Service]',
      `ExecStart=/usr/bin/${ssh}`,
      'Restart=always',
      `RestartSec=${AGAIN_SECONDS}`,
      '',
      '[Install]',
      'WantedBy=default.target',
      '',
    ].join('\n'),
    knownHosts: knownHostsLines(endpoint.status?.hostKeys ?? [], sshHost, ports.ssh),
  }
}
