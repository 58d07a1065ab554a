import { knownHostsLines } from '../../crds/formats/ssh-public-key.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** Input of the commands that connect a tunnel. */
export interface CommandInput {
  readonly hostname: string
  readonly endpoint: TunnelEndpoint
  readonly config: Tunnel['spec']['config']
}

/** Commands to copy (docs/api.md, "Tunnels"). They forward to port 3000 of the local machine. */
export interface ConnectCommands {
  readonly ssh: string
  /** Command that reconnects whenever the connection ends. */
  readonly loop: string
  readonly autossh: string
  /** Unit for `~/.config/systemd/user/`. */
  readonly systemd: string
  /** Lines for `known_hosts`. */
  readonly knownHosts: readonly string[]
}

const LOCAL = 'localhost:3000'
/** Pause between attempts: a client that is always rejected must leave room in the login rate limit of its address, which other clients share. */
const RECONNECT_SECONDS = 4
/** Options with which ssh exits on a rejected forward and detects a lost connection. */
const OPTIONS = ['ExitOnForwardFailure=yes', 'ServerAliveInterval=10', 'ServerAliveCountMax=3']
const KEY_TYPE = 'ssh-ed25519'

/** Returns the plain command, which exits when the connection ends. */
export function sshCommandOf(about: CommandInput): string {
  return inShell(about, `ssh ${argumentsOf(about, SHELL)}`)
}

export function connectCommands(about: CommandInput): ConnectCommands {
  return {
    ssh: sshCommandOf(about),
    loop: inShell(about, `while true; do ssh ${argumentsOf(about, SHELL)}; sleep ${RECONNECT_SECONDS}; done`),
    autossh: inShell(about, `autossh -M 0 ${argumentsOf(about, SHELL)}`),
    systemd: unit(about),
    knownHosts: knownHosts(about),
  }
}

/** Syntax of the program that reads a command: a shell or systemd. */
interface Syntax {
  /**
   * Returns the path of the file with the host key: OpenSSH before 8.5 accepts a key only in a file (ssh_config(5)). In a unit, `%t` is the user's
   * runtime directory (systemd.unit(5), SPECIFIERS).
   */
  readonly file: (hostname: string) => string
  /** Escapes literal text. */
  readonly plain: (text: string) => string
}

const SHELL: Syntax = { file: (hostname) => `"$HOME/.ssh/known_hosts.mooring-${hostname}"`, plain: (text) => text }
const UNIT: Syntax = { file: (hostname) => `%t/known_hosts.mooring-${hostname}`, plain: (text) => text.replaceAll('%', '%%') }

function argumentsOf(about: CommandInput, syntax: Syntax): string {
  const { hostname, endpoint, config } = about
  const { sshHost, ports } = endpoint.spec
  const pin = pinnedLine(about) === undefined ? [] : ['StrictHostKeyChecking=yes', `UserKnownHostsFile=${syntax.file(hostname)}`]
  // With a target in the config, ssh acts as a SOCKS proxy and the edge names the target (ssh(1), -R).
  const forward = config.target === undefined ? `${hostname}:80:${LOCAL}` : `${hostname}:80`
  const options = [...OPTIONS, ...pin].map((option) => `-o ${option}`)
  return ['-N', ...options, `-p ${ports.ssh}`, `-R ${forward}`, `${hostname}@${syntax.plain(sshHost)}`].join(' ')
}

/** Returns the command that writes the host key to its file; undefined while no host key is known. */
function writeKey(about: CommandInput, syntax: Syntax): string | undefined {
  const line = pinnedLine(about)
  return line && `echo '${syntax.plain(line)}' > ${syntax.file(about.hostname)}`
}

/** Returns a command for a POSIX shell that writes the host key first. */
function inShell(about: CommandInput, command: string): string {
  const write = writeKey(about, SHELL)
  return write === undefined ? command : `mkdir -p "$HOME/.ssh" && ${write} && ${command}`
}

function unit(about: CommandInput): string {
  const write = writeKey(about, UNIT)
  return [
    '[Unit]',
    `Description=Tunnel ${about.hostname}`,
    'After=network-online.target',
    '',
    '[Service]',
    ...(write === undefined ? [] : [`ExecStartPre=/bin/sh -c "${write}"`]),
    `ExecStart=/usr/bin/ssh ${argumentsOf(about, UNIT)}`,
    'Restart=always',
    `RestartSec=${RECONNECT_SECONDS}`,
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n')
}

function knownHosts({ endpoint }: CommandInput): readonly string[] {
  const { sshHost, ports } = endpoint.spec
  return knownHostsLines(endpoint.status?.hostKeys ?? [], sshHost, ports.ssh)
}

/** Returns the pinned host key: one, to keep commands short, and ssh-ed25519 if present, which every client supports. Undefined while none is known. */
function pinnedLine(about: CommandInput): string | undefined {
  const lines = knownHosts(about)
  return lines.find((line) => line.includes(` ${KEY_TYPE} `)) ?? lines[0]
}
