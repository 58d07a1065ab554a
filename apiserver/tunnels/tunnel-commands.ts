import { knownHostsLines } from '../../shared/known-hosts.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

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
/** Stock ssh neither says that a forward was refused nor notices a silent loss, unless told to. */
const OPTIONS = ['ExitOnForwardFailure=yes', 'ServerAliveInterval=10', 'ServerAliveCountMax=3']
const KEY_TYPE = 'ssh-ed25519'

/** The plain command: it ends with the connection. */
export function sshCommandOf(about: Connecting): string {
  return inShell(about, `ssh ${argumentsOf(about, SHELL)}`)
}

export function connectCommands(about: Connecting): ConnectCommands {
  return {
    ssh: sshCommandOf(about),
    loop: inShell(about, `while true; do ssh ${argumentsOf(about, SHELL)}; sleep ${AGAIN_SECONDS}; done`),
    autossh: inShell(about, `autossh -M 0 ${argumentsOf(about, SHELL)}`),
    systemd: unit(about),
    knownHosts: knownHosts(about),
  }
}

/** What the words of a command depend on: who reads them. */
interface Reader {
  /**
   * Where the host key of the endpoint is kept: no option of OpenSSH before 8.5 takes a key without a file (ssh_config(5)). In a unit `%t` is a directory of
   * the user's own (systemd.unit(5), SPECIFIERS).
   */
  readonly file: (hostname: string) => string
  readonly plain: (text: string) => string
}

const SHELL: Reader = { file: (hostname) => `"$HOME/.ssh/known_hosts.mooring-${hostname}"`, plain: (text) => text }
const UNIT: Reader = { file: (hostname) => `%t/known_hosts.mooring-${hostname}`, plain: (text) => text.replaceAll('%', '%%') }

function argumentsOf(about: Connecting, reader: Reader): string {
  const { hostname, endpoint, config } = about
  const { sshHost, ports } = endpoint.spec
  const pin = pinnedLine(about) === undefined ? [] : ['StrictHostKeyChecking=yes', `UserKnownHostsFile=${reader.file(hostname)}`]
  // Without a target of its own the client speaks SOCKS, and the edge names the target (ssh(1), -R).
  const forward = config.target === undefined ? `${hostname}:80:${LOCAL}` : `${hostname}:80`
  const options = [...OPTIONS, ...pin].map((option) => `-o ${option}`)
  return ['-N', ...options, `-p ${ports.ssh}`, `-R ${forward}`, `${hostname}@${reader.plain(sshHost)}`].join(' ')
}

/** Writes the host key to its file; undefined before any is known. */
function writeKey(about: Connecting, reader: Reader): string | undefined {
  const line = pinnedLine(about)
  return line && `echo '${reader.plain(line)}' > ${reader.file(about.hostname)}`
}

/** A command for a POSIX shell that writes the host key first. */
function inShell(about: Connecting, command: string): string {
  const write = writeKey(about, SHELL)
  return write === undefined ? command : `mkdir -p "$HOME/.ssh" && ${write} && ${command}`
}

function unit(about: Connecting): string {
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
    `RestartSec=${AGAIN_SECONDS}`,
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n')
}

function knownHosts({ endpoint }: Connecting): readonly string[] {
  const { sshHost, ports } = endpoint.spec
  return knownHostsLines(endpoint.status?.hostKeys ?? [], sshHost, ports.ssh)
}

/** The host key that commands pin: one, for they are to be read; of a type that every stock client takes. Undefined before any is known. */
function pinnedLine(about: Connecting): string | undefined {
  const lines = knownHosts(about)
  return lines.find((line) => line.includes(` ${KEY_TYPE} `)) ?? lines[0]
}
