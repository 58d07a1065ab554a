import { sshClient } from '../../support/edge/ssh2-client.ts'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type Client, type ClientChannel } from 'ssh2'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { openChannel } from '../../support/edge/channels.ts'
import { freePort } from '../../support/free-port.ts'
import { stoppedClock } from '../../support/edge/stopped-clock.ts'
import { freshHostname, HTTPS_PORT, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Output and end of a session channel, with OpenSSH and with a client that reads its streams. */

const edge = await startSshEdge()
afterAll(() => edge[Symbol.asyncDispose]())

function newTunnel() {
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
  return { hostname, url: `https://${hostname}.tunnel.localhost:${HTTPS_PORT}`, forward: ['-R', `${hostname}:80:127.0.0.1:9`] }
}

const times = (text: string, part: string) => text.split(part).length - 1

describe('OpenSSH', () => {
  test('without a terminal shows URL and target once on standard output, and stays when its input ends', async () => {
    const { hostname, url, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: ['-T', ...forward] })
    client.endInput()
    await vi.waitFor(() => expect(client.output.stdout).toContain('ssh -N asks for none.\n'), SOON)
    const line = `${url} -> the target named in your -R\n`
    expect([times(client.output.stdout, line), times(client.output.text, line)]).toEqual([1, 1])
    expect(client.output.stdout).not.toContain('\r')
    expect(client.output.stderr).toContain(
      `Mooring: ${url} -> the target named in your -R, once this connection forwards port 80.`,
    )
    expect(edge.sessions.of(hostname)).toHaveLength(1)
    client.kill('SIGINT')
    expect(await client.exited).toBe(255)
  })

  test('with a terminal shows lines that end with CRLF, and exits with 0 on ctrl-C', async () => {
    const { hostname, url, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: ['-tt', ...forward] })
    await vi.waitFor(() => expect(client.output.stdout).toContain('ssh -N asks for none.\r\n'), SOON)
    expect(times(client.output.stdout, `${url} -> the target named in your -R\r\n`)).toBe(1)
    expect(client.output.stdout.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
    client.type('\x03')
    expect(await client.exited).toBe(0)
  })

  test('with a command shows URL and target', async () => {
    const { hostname, url, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: forward, command: 'uptime' })
    await vi.waitFor(() => expect(client.output.stdout).toContain(`${url} -> the target named in your -R`), SOON)
  })

  test('shows notices of its session on stderr, without control characters and within a limit', async () => {
    const { hostname, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: ['-T', ...forward] })
    await vi.waitFor(() => expect(client.output.stdout).toContain('asks for none.'), SOON)
    const [session] = edge.sessions.of(hostname)
    for (let count = 0; count < 100; count++) session?.notify('Mooring: the target\u001b[2J refused a request.')
    for (let count = 0; count < 100; count++) session?.notify(`Mooring: notice ${count}.`)
    await vi.waitFor(() => expect(client.output.stderr).toContain('notice 8.\n'), SOON)
    expect(times(client.output.stderr, 'Mooring: the target?[2J refused a request.\n')).toBe(1)
    expect(times(client.output.stderr, 'Mooring: notice')).toBe(9)
  })

  test('with -N has no session channel, and shows the banner only', async () => {
    const { hostname, url, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: ['-N', ...forward] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    expect(client.output.stderr).toContain(
      `Mooring: ${url} -> the target named in your -R, once this connection forwards port 80.`,
    )
    client.kill()
    await client.exited
    expect(client.output.stdout).toBe('')
  })

  test.each([
    ['a target', { target: 'localhost:3000' }, '-R 80'],
    ['no target', {}, '-R 80:localhost:3000'],
  ])('without a forward shows the command on stderr and exits with 1; tunnel with %s', async (_target, config, forward) => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
    const client = edge.ssh({ user: hostname, args: ['-T'] })
    expect(await client.exited).toBe(1)
    expect(client.output.stdout).toBe('')
    const command = `ssh -p ${edge.port} ${forward} ${hostname}@127.0.0.1`
    expect(client.output.stderr).toContain(`Mooring: this connection forwards nothing: -R is missing. Type: ${command}`)
  })

  test('with -N and without a forward shows the command after forwardGraceMs', async () => {
    const clock = stoppedClock()
    await using own = await startSshEdge()
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, args: ['-N'] })
    await vi.waitFor(() => expect(own.records).toMatchObject([{ type: 'connect' }]), SOON)
    clock.pass(DEFAULT_SSH_LIMITS.forwardGraceMs + 1)
    expect(await client.exited).toBe(255)
    expect(client.output.stderr).toContain(`Type: ssh -p ${own.port} -R 80:localhost:3000 ${hostname}@127.0.0.1`)
  })

  test('shows the target of the tunnel', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], target: 'localhost:3000' })
    const client = edge.ssh({ user: hostname, args: ['-T', '-R', '80'] })
    const line = `https://${hostname}.tunnel.localhost:${HTTPS_PORT} -> localhost:3000`
    await vi.waitFor(() => expect(client.output.stdout).toContain(`${line}\n`), SOON)
    expect(client.output.stderr).toContain(`Mooring: ${line}, once this connection forwards port 80.`)
  })
})

describe.each([
  { how: 'a forward', config: {}, forward: (hostname: string, port: number) => `${hostname}:80:127.0.0.1:${port}` },
  {
    how: 'a forward by remote SOCKS',
    config: { target: 'localhost:9' },
    forward: (hostname: string) => `${hostname}:80`,
  },
])('OpenSSH with $how whose target is down', ({ config, forward }) => {
  test('shows an error on stderr, once for many visitors', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
    const client = edge.ssh({ user: hostname, args: ['-T', '-R', forward(hostname, await freePort())] })
    await vi.waitFor(() => expect(client.output.stdout).toContain('ssh -N asks for none.\n'), SOON)
    const [session] = edge.sessions.of(hostname)
    if (!session) throw new Error('there is no session')
    const line = 'your client could not reach the target of this tunnel'
    for (let count = 0; count < 5; count++) expect(await openChannel(session).over).toBe('refused connect_failed')
    await vi.waitFor(() => expect(client.output.stderr).toContain(line), SOON)
    expect([times(client.output.stderr, line), client.output.stdout.includes(line)]).toEqual([1, false])
  })
})

const NO_SFTP = 'Mooring: there is no "sftp" here.'

describe('a subsystem', () => {
  test.each<[string, (forward: readonly string[]) => readonly string[]]>([
    ['with a forward', (forward) => forward],
    ['without a forward', () => []],
    ['with a terminal', () => ['-tt']],
  ])('that OpenSSH requests %s is rejected on stderr only', async (_how, args) => {
    const { hostname, forward } = newTunnel()
    const client = edge.ssh({ user: hostname, args: [...args(forward), '-s'], command: 'sftp' })
    expect(await client.exited).toBe(1)
    expect(times(client.output.stderr, NO_SFTP)).toBe(1)
    expect(client.output.stdout).toBe('')
  })

  test('beside a serving tunnel is rejected, and the tunnel serves on', async () => {
    const { hostname, forward } = newTunnel()
    const control = edge.file('control')
    edge.ssh({ user: hostname, args: ['-N', '-M', '-S', control, ...forward] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    const client = edge.ssh({ user: hostname, args: ['-S', control, '-s'], command: 'sftp' })
    expect(await client.exited).toBe(1)
    expect(client.output.stderr).toContain(NO_SFTP)
    expect(edge.sessions.of(hostname)).toHaveLength(1)
  })

  test.each<[string, (host: string) => readonly string[]]>([
    ['sftp', (host) => [host]],
    ['scp', (host) => [edge.file('id.pub'), `${host}:copy`]],
  ])('that %s requests is rejected with a message', async (program, rest) => {
    const { hostname } = newTunnel()
    const options = [
      'BatchMode=yes',
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      `UserKnownHostsFile=${edge.file('known_hosts')}`,
    ]
    const how = ['-F', 'none', '-i', edge.file('id'), '-P', String(edge.port), ...options.flatMap((option) => ['-o', option])]
    const child = execFile(program, [...how, ...rest(`${hostname}@127.0.0.1`)])
    let said = ''
    child.stderr?.on('data', (text: string) => (said += text))
    const [status] = (await once(child, 'close')) as [number]
    expect(status).not.toBe(0)
    expect(said).toContain(NO_SFTP)
  })
})

describe('a client that reads its streams', () => {
  async function connected() {
    const { hostname, url } = newTunnel()
    const client = sshClient()
    onTestFinished(() => void client.destroy())
    await new Promise<void>((resolve, reject) => {
      client.once('ready', () => resolve()).once('error', reject)
      client.connect({ host: '127.0.0.1', port: edge.port, username: hostname, privateKey: readFileSync(edge.file('id')) })
    })
    await new Promise<void>((resolve, reject) => {
      client.forwardIn(hostname, 80, (error) => (error ? reject(error) : resolve()))
    })
    return { client, url }
  }

  /** Returns the channel's output by stream, updated as it arrives. */
  function heard(channel: ClientChannel) {
    const seen = { data: '', stderr: '' }
    channel.on('data', (data: Buffer) => (seen.data += data.toString()))
    channel.stderr.on('data', (data: Buffer) => (seen.stderr += data.toString()))
    return seen
  }

  test('gets the rejection of a subsystem on stderr, without control characters', async () => {
    const { client } = await connected()
    const result = await new Promise((resolve, reject) => {
      client.subsys('net\u001b[2Jconf', (error, channel) => {
        if (error) return reject(error)
        // Attached at once, since all output may have arrived already.
        const seen = heard(channel)
        let status: unknown
        channel.once('exit', (code) => (status = code)).once('close', () => resolve({ status, ...seen }))
      })
    })
    expect(result).toEqual({
      status: 1,
      data: '',
      stderr: 'Mooring: there is no "net?[2Jconf" here. A connection forwards ports, and runs nothing.\n',
    })
  })

  test.each<[string, (client: Client, done: (error: Error | undefined, channel: ClientChannel) => void) => void, string]>([
    ['a shell without a terminal', (client, done) => client.shell(false, done), '\n'],
    ['a shell with a terminal', (client, done) => client.shell(done), '\r\n'],
    ['a command', (client, done) => client.exec('uptime', done), '\n'],
  ])('gets the URL from %s', async (_what, open, end) => {
    const { client, url } = await connected()
    const channel = await new Promise<ClientChannel>((resolve, reject) => {
      open(client, (error, opened) => (error ? reject(error) : resolve(opened)))
    })
    const seen = heard(channel)
    await vi.waitFor(() => expect(seen.data).toContain('asks for none.'), SOON)
    expect(seen).toEqual({
      data: [
        `${url} -> the target named in your -R`,
        'Press ctrl-C to end it. No shell runs here; ssh -N asks for none.',
        '',
      ].join(end),
      stderr: '',
    })
  })
})
