import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Data, Tunnel } from '../support/answers.ts'
import { type Running, running } from '../support/edge/ssh-programs.ts'
import { openHome } from '../support/home.ts'
import { startLocalServer } from '../support/local-server.ts'
import { writeSsh } from '../support/ssh-for-path.ts'
import { succeed, type Tenant } from '../support/tenant.ts'
import { visit } from '../support/visitor.ts'

/** The commands that the API gives for a tunnel, run as they stand by a shell. */

const SOON = { timeout: 20_000, interval: 50 }
const run = promisify(execFile)

const home = openHome()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let directory: string
let localPort: number
let publicKey: string
beforeAll(async () => {
  acme = await home.namespace()
  const own = cleanup.use(await mkdtempDisposable(join(tmpdir(), 'mooring-commands-')))
  directory = own.path
  localPort = cleanup.use(await startLocalServer()).port
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'somebody', '-f', join(directory, 'key')])
  publicKey = (await readFile(join(directory, 'key.pub'), 'utf8')).trim()
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await home[Symbol.asyncDispose]()
})

/** What `GET …/connect` gives, and the command of the tunnel's own record. */
type Commands = Data['connect'] & Pick<Tunnel, 'sshCommand'>

async function newTunnel(): Promise<{ readonly tunnel: Tunnel; readonly commands: Commands }> {
  const tunnel = await acme.tunnel({ authorizedKeys: [publicKey] })
  const { body } = await succeed(acme.as('viewer')('GET', `${acme.path}/tunnels/${tunnel.id}/connect`))
  return { tunnel, commands: { ...body.data.connect, sshCommand: tunnel.sshCommand } }
}

const serves = ({ tunnel, client }: { readonly tunnel: Tunnel; readonly client: Running }) =>
  vi.waitFor(async () => expect((await visit(home.installation.ca, tunnel)).status, client.said()).toBe(200), SOON)

const knownHostsFile = () => join(directory, 'known_hosts')

/** A shell that somebody types a command into who has a key, and a file known_hosts with these lines. */
async function typed(command: string, knownHosts: readonly string[], ...options: readonly string[]): Promise<Running> {
  await writeFile(knownHostsFile(), knownHosts.map((line) => `${line}\n`).join(''))
  const own = [`IdentityFile=${join(directory, 'key')}`, `UserKnownHostsFile=${knownHostsFile()}`]
  const ssh = await writeSsh(directory, { options: [...own, ...options], localPort })
  // autossh does not look for it in PATH.
  return running(['sh', '-c', command], { PATH: `${directory}:${process.env.PATH ?? ''}`, AUTOSSH_PATH: ssh })
}

const STRICT = 'StrictHostKeyChecking=yes'
/** Of a unit as systemd reads it (systemd.syntax(7)): what is in each section. */
const sectionsOf = (unit: string): Readonly<Record<string, Readonly<Record<string, string>>>> =>
  Object.fromEntries(
    unit.split(/^\[/m).flatMap((section) => {
      const [, name, lines = ''] = /^(\w+)\]\n([^]*)$/.exec(section) ?? []
      const entries = lines.split('\n').filter((line) => line !== '')
      return name === undefined ? [] : [[name, Object.fromEntries(entries.map((line) => line.split(/=(.*)/, 2)))]]
    }),
  )
const startOf = ({ systemd }: Commands) => sectionsOf(systemd).Service?.ExecStart ?? ''

describe('shows a local port to visitors, over a connection to the host that the API vouches for', () => {
  test.each<{ does: string; of: (commands: Commands) => string }>([
    { does: 'the command of the tunnel’s record', of: ({ sshCommand }) => sshCommand },
    { does: 'that of connect', of: ({ ssh }) => ssh },
    { does: 'autossh', of: ({ autossh }) => autossh },
    { does: 'what the unit starts', of: (commands) => startOf(commands).replace(/^\/usr\/bin\//, '') },
  ])('$does', async ({ of }) => {
    const { tunnel, commands } = await newTunnel()
    await using client = await typed(of(commands), commands.knownHosts, STRICT)
    await serves({ tunnel, client })
  })

  test('the loop, which connects again', async () => {
    const { tunnel, commands } = await newTunnel()
    await using client = await typed(commands.loop, commands.knownHosts, STRICT)
    await serves({ tunnel, client })
    const ssh = async () => (await run('pgrep', ['--parent', String(client.child.pid), '--exact', 'ssh'])).stdout
    const first = await ssh()
    process.kill(Number(first), 'SIGKILL')
    await vi.waitFor(async () => expect(await ssh()).not.toBe(first), SOON)
    await serves({ tunnel, client })
  })
})

test('a host that is seen for the first time is taken without a question, and is known by a line that the API gives', async () => {
  const { tunnel, commands } = await newTunnel()
  await using client = await typed(commands.ssh, [])
  await serves({ tunnel, client })
  const learnt = (await readFile(knownHostsFile(), 'utf8')).trimEnd().split('\n')
  expect(commands.knownHosts).toEqual(expect.arrayContaining(learnt))
})

test('one that has another key than it had ends the client', async () => {
  const { commands } = await newTunnel()
  const other = (line: string) => line.replace(/[^ ]+$/, publicKey.split(' ')[1] ?? '')
  const lines = commands.knownHosts.filter((line) => line.includes('ssh-ed25519')).map(other)
  await using client = await typed(commands.ssh, lines)
  expect(await client.exited).toBe(255)
  expect(client.said()).toContain('Host key verification failed')
})

test('the unit is one that systemd starts and keeps up', async () => {
  const { tunnel, commands } = await newTunnel()
  expect(sectionsOf(commands.systemd)).toEqual({
    Unit: { Description: `Tunnel ${tunnel.hostname}`, After: 'network-online.target' },
    Service: { ExecStart: `/usr/bin/${commands.ssh}`, Restart: 'always', RestartSec: '4' },
    Install: { WantedBy: 'default.target' },
  })
  // It says on stderr what it does not understand, and takes the rest.
  const verify = 'if command -v systemd-analyze > /dev/null; then systemd-analyze verify --user --man=no "$1"; fi'
  const unit = join(directory, 'tunnel.service')
  await writeFile(unit, commands.systemd)
  const env = { PATH: process.env.PATH, XDG_RUNTIME_DIR: directory }
  expect((await run('sh', ['-c', verify, 'sh', unit], { env })).stderr).toBe('')
})
