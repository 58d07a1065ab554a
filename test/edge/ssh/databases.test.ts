import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { socketQueues } from '../../support/edge/attack-tools.ts'
import { freshHostname, startBackend, startSshEdge, type SshClient, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { closeOf } from '../../support/edge/raw-http.ts'

/** Logins to dedicated databases with the stock client of OpenSSH. */

const SOON = { timeout: 60_000, interval: 20 }
const PORT = 5432

let edge: Awaited<ReturnType<typeof startSshEdge>>
let server: Awaited<ReturnType<typeof startBackend>>
/** Connections to the database server. */
const accepted: Socket[] = []
/** Server of another database, to which no client may get. */
let neighbour: Awaited<ReturnType<typeof startBackend>>
let strays = 0
beforeAll(async () => {
  edge = await startSshEdge({ keepaliveMs: 60_000 })
  server = await startBackend((socket) => {
    accepted.push(socket)
    socket.pipe(socket)
  })
  neighbour = await startBackend(() => (strays += 1))
})
afterAll(async () => {
  expect(strays).toBe(0)
  await edge[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await neighbour[Symbol.asyncDispose]()
})

const INTERNAL_HOST = 'db-1.mooring-shared.svc.cluster.local'
const database = (port = server.port) => ({ port: PORT, server: { host: '127.0.0.1', port }, internalHost: INTERNAL_HOST })

function newDatabase(config: object = { authorizedKeys: [edge.publicKey] }): string {
  const hostname = freshHostname()
  edge.routes.set(hostname, config, [], database())
  return hostname
}

/** Waits until a program listens on the port: OpenSSH does so after its login. */
const untilListening = (port: number) =>
  vi.waitFor(async () => {
    const listening = (await socketQueues()).filter(({ localPort, remotePort }) => localPort === port && remotePort === 0)
    expect(listening).not.toEqual([])
  }, SOON)

/** Starts `ssh -N -L` and waits until it has logged in and listens. */
async function open(
  user: string,
  more: Partial<Parameters<typeof edge.ssh>[0]> = {},
): Promise<{ client: SshClient; port: number }> {
  const port = await freePort()
  const client = edge.ssh({ user, args: ['-N', '-L', `${port}:db:${PORT}`], ...more })
  await vi.waitFor(() => expect(edge.sessions.of(user)).toHaveLength(1), SOON)
  await untilListening(port)
  return { client, port }
}

/** Returns what comes back for a text. */
async function echoed(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let all = ''
  socket.on('data', (chunk: Buffer) => (all += chunk.toString()))
  socket.on('error', () => undefined)
  socket.end(text)
  await closeOf(socket)
  return all
}

describe('ssh -N -L', () => {
  test('reaches the server, half-closed connections included', async () => {
    const { client, port } = await open(newDatabase())
    expect(await echoed(port, 'SELECT 1')).toBe('SELECT 1')
    const big = 'x'.repeat(3_000_000)
    expect(await echoed(port, big)).toBe(big)
    client.kill()
    await client.exited
  })

  test.each(['localhost', '127.0.0.1', 'LOCALHOST', 'db.', INTERNAL_HOST])('reaches it as %s, too', async (host) => {
    const client = edge.ssh({ user: newDatabase(), args: ['-W', `${host}:${PORT}`] })
    client.type('SELECT 1')
    await vi.waitFor(() => expect(client.output.stdout).toBe('SELECT 1'), SOON)
    client.kill()
    await client.exited
  })

  test('with -R besides reaches it all the same', async () => {
    const port = await freePort()
    const user = newDatabase()
    const args = ['-N', '-o', 'ExitOnForwardFailure=no', '-L', `${port}:db:${PORT}`, '-R', '80:localhost:1']
    const client = edge.ssh({ user, args })
    await vi.waitFor(() => expect(client.output.text).toContain('remote port forwarding failed'), SOON)
    expect(client.output.text).toContain('It forwards no ports to you (-R).')
    await untilListening(port)
    expect(await echoed(port, 'SELECT 1')).toBe('SELECT 1')
    client.kill()
    await client.exited
  })

  test('by a password, whatever the user name is, and until that is revoked', async () => {
    const hostname = freshHostname()
    const { password, routed } = temporaryPassword()
    edge.routes.set(hostname, {}, [routed], database())
    const port = await freePort()
    const client = edge.ssh({ user: 'postgres', password, args: ['-N', '-L', `${port}:db:${PORT}`] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    await untilListening(port)
    expect(await echoed(port, 'hello')).toBe('hello')
    edge.routes.set(hostname, {}, [], database())
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('Mooring: the password of this login was revoked.')
  })

  test('by a key, until the database takes passwords alone', async () => {
    const hostname = newDatabase()
    const { client } = await open(hostname)
    edge.routes.set(hostname, { authMode: 'token', authorizedKeys: [edge.publicKey] }, [], database())
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('no longer takes this kind of login')
  })

  test('has a limited number of logins', async () => {
    await using own = await startSshEdge({ sessionsPerTunnel: 1 })
    const user = freshHostname()
    own.routes.set(user, { authorizedKeys: [own.publicKey] }, [], database())
    const first = own.ssh({ user, args: ['-N'] })
    await vi.waitFor(() => expect(own.sessions.of(user)).toHaveLength(1), SOON)
    const second = own.ssh({ user, args: ['-N'] })
    expect(await second.exited).not.toBe(0)
    expect(second.output.text).toContain('has reached its limit of connections')
    first.kill()
    await first.exited
  })

  test('a server that comes back is reached without another login', async () => {
    const hostname = freshHostname()
    const closed = await freePort()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] }, [], database(closed))
    const { client, port } = await open(hostname)
    expect(await echoed(port, 'x')).toBe('')
    await vi.waitFor(() => expect(client.output.text).toContain('the database server does not answer'), SOON)
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] }, [], { port: PORT, server: undefined })
    expect(await echoed(port, 'x')).toBe('')
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] }, [], database())
    expect(await echoed(port, 'now')).toBe('now')
    client.kill()
    await client.exited
  })

  test('connects over loopback from the address that the server admits', async () => {
    const hostname = freshHostname()
    const from = { ...database(), server: { host: '127.0.0.1', port: server.port, source: '127.83.72.1' } }
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] }, [], from)
    const { client, port } = await open(hostname)
    const socket = connect(port, '127.0.0.1')
    socket.write('hold')
    await once(socket, 'data')
    expect(accepted.at(-1)?.remoteAddress).toBe('127.83.72.1')
    socket.destroy()
    client.kill()
    await client.exited
  })

  test('a session ends when the firewall rules exclude its address', async () => {
    const hostname = newDatabase()
    const { client } = await open(hostname)
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], sshIPWhitelist: ['192.0.2.1'] }, [], database())
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('Mooring: the firewall rules of this database no longer allow your address.')
    expect(await edge.ssh({ user: hostname, args: ['-N'] }).exited).not.toBe(0)
    const reasons = () => edge.records.filter(({ tunnel }) => tunnel === `uid-${hostname}`).map(({ reason }) => reason)
    await vi.waitFor(() => expect(reasons()).toEqual([null, 'ip_denied', 'ip_denied']), SOON)
  })

  test('open connections end with the session when the database is deleted', async () => {
    const hostname = newDatabase()
    const { client, port } = await open(hostname)
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('hold')
    await once(socket, 'data')
    const last = accepted.at(-1)
    edge.routes.delete(hostname)
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('Mooring: the SSH tunnel of this database was taken away, or the database was deleted.')
    await vi.waitFor(() => expect(last?.destroyed).toBe(true), SOON)
    const reasons = () =>
      edge.records.filter(({ tunnel }) => tunnel === `uid-${hostname}`).map(({ type, reason }) => [type, reason])
    await vi.waitFor(() => {
      expect(reasons()).toEqual([
        ['connect', null],
        ['disconnect', 'tunnel_deleted'],
      ])
      expect(edge.sessions.of(hostname)).toEqual([])
    }, SOON)
  })
})

describe('a login to a database gives nothing else:', () => {
  test.each([
    ['another port of db', () => ['-W', `db:${PORT + 1}`]],
    ['its server by address', () => ['-W', `127.0.0.1:${server.port}`]],
    ['another server', () => ['-W', `127.0.0.1:${neighbour.port}`]],
    ['the edge itself', () => ['-W', `localhost:${edge.port}`]],
    ['another name', () => ['-W', `db.example.com:${PORT}`]],
    ['the name of another server in the cluster', () => ['-W', `db-9.mooring-shared.svc.cluster.local:${PORT}`]],
    ['an IPv6 host', () => ['-W', `[::1]:${PORT}`]],
  ])('ssh -W to %s is refused with a sentence', async (_name, args) => {
    const client = edge.ssh({ user: newDatabase(), args: args() })
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain(`Mooring: this login opens db:${PORT} alone, not`)
  })

  test('ssh -D reaches the database by its name alone', async () => {
    const port = await freePort()
    const hostname = newDatabase()
    const client = edge.ssh({ user: hostname, args: ['-N', '-D', String(port)] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    const socks = (host: string, to: number) =>
      Buffer.concat([Buffer.of(5, 1, 0, 5, 1, 0, 3, host.length), Buffer.from(host), Buffer.of(to >> 8, to & 0xff)])
    const ask = async (host: string, to: number) => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      let bytes = 0
      socket.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        // Two bytes of greeting and ten of the answer: the channel is open.
        if (bytes >= 12) socket.end()
      })
      socket.write(socks(host, to))
      await closeOf(socket)
      return bytes >= 12
    }
    await vi.waitFor(async () => expect(await ask('db', PORT)).toBe(true), SOON)
    expect(await ask('127.0.0.1', neighbour.port)).toBe(false)
    expect(await ask('localhost', neighbour.port)).toBe(false)
    client.kill()
    await client.exited
  })

  test.each([
    ['ssh -R', ['-N', '-R', '80:localhost:1']],
    ['ssh -R of a socket', ['-N', '-R', '/tmp/mooring.sock:localhost:1']],
  ])('%s alone ends with a sentence', async (_name, args) => {
    await using own = await startSshEdge({ rejectedForwardMs: 100 })
    const user = freshHostname()
    own.routes.set(user, { authorizedKeys: [own.publicKey] }, [], database())
    const client = own.ssh({ user, args: [...args, '-o', 'ExitOnForwardFailure=no'] })
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('forwards no ports to you: leave -R out')
  })

  test('a Unix socket of the edge is refused', async () => {
    const port = await freePort()
    const hostname = newDatabase()
    const client = edge.ssh({ user: hostname, args: ['-N', '-L', `${port}:/run/secret.sock`] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    await untilListening(port)
    expect(await echoed(port, 'x')).toBe('')
    client.kill()
    await client.exited
  })

  test('a shell, a command and an agent get a text alone, and sftp a sentence', async () => {
    const hostname = newDatabase()
    for (const [args, command] of [
      [['-T', '-A'], undefined],
      [['-tt'], 'cat /etc/passwd'],
    ] as const) {
      const client = edge.ssh({ user: hostname, args, ...(command !== undefined && { command }) })
      await vi.waitFor(
        () => expect(client.output.stdout).toContain(`database web of acme/prod is at 127.0.0.1:${PORT} of your machine`),
        SOON,
      )
      expect(client.output.text).not.toContain('root:')
      client.kill()
      await client.exited
    }
    const sftp = edge.ssh({ user: hostname, args: ['-s'], command: 'sftp' })
    expect(await sftp.exited).not.toBe(0)
    expect(sftp.output.stderr).toContain('Mooring: there is no "sftp" here.')
  })

  test('the login of a tunnel opens no database', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-W', `db:${PORT}`] })
    expect(await client.exited).not.toBe(0)
    expect(client.output.text).toContain('Mooring forwards remote ports (-R) only')
  })
})

test('refused logins look like those of a tunnel, and the journal has the reason', async () => {
  edge.makeKey('stranger')
  const hostname = newDatabase()
  const client = edge.ssh({ user: hostname, key: 'stranger', args: ['-N'] })
  expect(await client.exited).not.toBe(0)
  expect(client.output.text).toContain('Mooring: this login is not accepted.')
  const reasons = () =>
    edge.records.filter(({ tunnel }) => tunnel === `uid-${hostname}`).map(({ type, reason }) => [type, reason])
  await vi.waitFor(() => expect(reasons()).toEqual([['refused', 'key']]), SOON)

  const byPassword = newDatabase({ authMode: 'key', authorizedKeys: [edge.publicKey] })
  const { password, routed } = temporaryPassword()
  edge.routes.set(byPassword, { authMode: 'key' }, [routed], database())
  const other = edge.ssh({ user: byPassword, password, args: ['-N', '-o', 'NumberOfPasswordPrompts=1'] })
  expect(await other.exited).not.toBe(0)
  const record = () => edge.records.find(({ tunnel }) => tunnel === `uid-${byPassword}`)
  await vi.waitFor(() => expect(record()).toMatchObject({ type: 'refused', reason: 'auth_mode' }), SOON)
})
