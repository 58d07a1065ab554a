import { execFile } from 'node:child_process'
import { mkdtemp, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Data, Tunnel } from '../support/api/answers.ts'
import { type Running, running, writeSsh } from '../support/edge/openssh.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { startLocalServer, visit } from '../support/edge/visitor.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Commands that the API returns for a tunnel, run unchanged by a shell. */

const run = promisify(execFile)

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let directory: string
let localPort: number
let publicKey: string
beforeAll(async () => {
  acme = await deployment.namespace()
  const own = cleanup.use(await mkdtempDisposable(join(tmpdir(), 'mooring-commands-')))
  directory = own.path
  localPort = cleanup.use(await startLocalServer()).port
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'user', '-f', join(directory, 'key')])
  publicKey = (await readFile(join(directory, 'key.pub'), 'utf8')).trim()
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Commands of `GET …/connect`, and the command in the tunnel resource. */
type Commands = Data['connect'] & Pick<Tunnel, 'sshCommand'>

async function newTunnel(): Promise<{ readonly tunnel: Tunnel; readonly commands: Commands }> {
  const tunnel = await acme.tunnel({ authorizedKeys: [publicKey] })
  const { body } = await expectSuccess(acme.as('viewer')('GET', `${acme.path}/tunnels/${tunnel.id}/connect`))
  return { tunnel, commands: { ...body.data.connect, sshCommand: tunnel.sshCommand } }
}

const serves = ({ tunnel, client }: { readonly tunnel: Tunnel; readonly client: Running }) =>
  vi.waitFor(async () => expect((await visit(deployment.installation.ca, tunnel)).status, client.said()).toBe(200), LATER)

/** Shell of a user who has a key and no known_hosts entry for the host. */
async function typed(command: string, shell = 'bash'): Promise<Running> {
  const person = await mkdtemp(join(directory, 'person-'))
  const ssh = await writeSsh(person, { options: [`IdentityFile=${join(directory, 'key')}`], localPort })
  // autossh does not search PATH for ssh.
  return running([shell, '-c', command], { PATH: `${person}:${process.env.PATH ?? ''}`, AUTOSSH_PATH: ssh, HOME: person })
}

/** Parses a unit as systemd does (systemd.syntax(7)) and returns its settings by section. */
const sectionsOf = (unit: string): Readonly<Record<string, Readonly<Record<string, string>>>> =>
  Object.fromEntries(
    unit.split(/^\[/m).flatMap((section) => {
      const [, name, lines = ''] = /^(\w+)\]\n([^]*)$/.exec(section) ?? []
      const entries = lines.split('\n').filter((line) => line !== '')
      return name === undefined ? [] : [[name, Object.fromEntries(entries.map((line) => line.split(/=(.*)/, 2)))]]
    }),
  )
/** Command that the unit starts, unquoted as systemd does it. */
function startOf({ systemd }: Commands): string {
  const { ExecStartPre = '', ExecStart = '' } = sectionsOf(systemd).Service ?? {}
  const specified = (command: string) => command.replaceAll(/%[t%]/g, (specifier) => (specifier === '%t' ? directory : '%'))
  return [ExecStartPre, ExecStart.replace(/^\/usr\/bin\//, '')].map(specified).join(' && ')
}

const COMMANDS: readonly { readonly does: string; readonly of: (commands: Commands) => string }[] = [
  { does: 'the command of the tunnel’s record', of: ({ sshCommand }) => sshCommand },
  { does: 'the command of connect', of: ({ ssh }) => ssh },
  { does: 'autossh', of: ({ autossh }) => autossh },
  { does: 'the command that the unit starts', of: startOf },
]

describe('a command publishes a local port over a connection to the host whose key the API returns', () => {
  test.each(COMMANDS.flatMap((command) => ['bash', 'sh'].map((shell) => ({ ...command, shell }))))(
    '$does, in $shell',
    async ({ of, shell }) => {
      const { tunnel, commands } = await newTunnel()
      await using client = await typed(of(commands), shell)
      await serves({ tunnel, client })
    },
  )

  test('the loop connects again after a disconnect', async () => {
    const { tunnel, commands } = await newTunnel()
    await using client = await typed(commands.loop)
    await serves({ tunnel, client })
    const ssh = async () => (await run('pgrep', ['--parent', String(client.child.pid), '--exact', 'ssh'])).stdout
    const first = await ssh()
    process.kill(Number(first), 'SIGKILL')
    await vi.waitFor(async () => expect(await ssh()).not.toBe(first), LATER)
    await serves({ tunnel, client })
  })
})

test.each(COMMANDS)('a host with another key than the API returns is rejected by the client: $does', async ({ of }) => {
  const { tunnel, commands } = await newTunnel()
  const own = tunnel.endpoint.hostKeys.find((key) => key.startsWith('ssh-ed25519 ')) ?? ''
  const command = of(commands).replaceAll(own, publicKey.split(' ').slice(0, 2).join(' '))
  expect(command).not.toBe(of(commands))
  // Plain ssh instead of autossh, which would retry instead of exiting.
  await using client = await typed(command.replace('autossh -M 0 ', 'ssh '))
  expect(await client.exited).toBe(255)
  expect(client.said()).toContain('Host key verification failed')
})

describe('the terminal of a command without -N', () => {
  test('shows the working URL and the local target', async () => {
    const { tunnel, commands } = await newTunnel()
    await using client = await typed(commands.ssh.replace(' -N ', ' -T '))
    // Behind a balancer of 443 visitors need no port.
    const urls = [tunnel.directUrl, tunnel.url].map((url) => `${url} -> the target named in your -R\n`)
    await vi.waitFor(
      () =>
        expect(
          urls.some((line) => client.said().includes(`\n${line}`)),
          client.said(),
        ).toBe(true),
      LATER,
    )
    await serves({ tunnel, client })
  })

  test('shows the right command at once when -R is missing', async () => {
    const { tunnel, commands } = await newTunnel()
    const { hostname, endpoint } = tunnel
    await using client = await typed(commands.ssh.replace(' -N ', ' -T ').replace(/ -R \S+/, ''))
    expect(await client.exited).toBe(1)
    expect(client.said()).toContain(
      `-R is missing. Type: ssh -p ${endpoint.sshPort} -R 80:localhost:3000 ${hostname}@${endpoint.sshHost}`,
    )
  })
})

test('the systemd unit is valid and always restarts its command', async () => {
  const { tunnel, commands } = await newTunnel()
  expect(sectionsOf(commands.systemd)).toMatchObject({
    Unit: { Description: `Tunnel ${tunnel.hostname}`, After: 'network-online.target' },
    Service: { Restart: 'always', RestartSec: '4' },
    Install: { WantedBy: 'default.target' },
  })
  // systemd-analyze reports unknown settings on stderr and accepts the rest.
  const verify = 'if command -v systemd-analyze > /dev/null; then systemd-analyze verify --user --man=no "$1"; fi'
  const unit = join(directory, 'tunnel.service')
  await writeFile(unit, commands.systemd)
  const env = { PATH: process.env.PATH, XDG_RUNTIME_DIR: directory }
  expect((await run('sh', ['-c', verify, 'sh', unit], { env })).stderr).toBe('')
})
