import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { DATABASE_PORT } from '../../support/edge/database-logins.ts'
import { freshHostname, startBackend, startSshEdge, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { PYTHON } from '../../support/python.ts'

/** SSH tunnels to databases with Paramiko, the SSH library of several GUI clients. */

/** Prints one line a check: what the server returns through channels, and the answers to other channels. */
const PROGRAM = `
import json, sys
import paramiko

about = json.loads(sys.argv[1])
client = paramiko.SSHClient()
client.load_host_keys(about["knownHosts"])
client.connect("127.0.0.1", look_for_keys=False, allow_agent=False, **about["login"])
transport = client.get_transport()
transport.set_keepalive(1)

def channel(host, port):
    return transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 1))

def echo(to, text):
    to.sendall(text)
    read = b""
    while len(read) < len(text):
        read += to.recv(65536)
    return read == text

port = about["port"]
first, second = channel("localhost", port), channel("127.0.0.1", port)
print(echo(second, b"second") and echo(first, b"first"))
transport.renegotiate_keys()
print(echo(first, b"x" * 1_000_000) and echo(second, b"after the exchange of keys"))
for host, other in (("localhost", 22), ("db.example.com", port)):
    try:
        channel(host, other)
        print("opened")
    except paramiko.ChannelException as error:
        print(error)
try:
    transport.request_port_forward("", 80)
    print("forwarded")
except paramiko.SSHException as error:
    print(error)
print(echo(first, b"goes on"))
first.shutdown_write()
print(first.recv(1) == b"")
client.close()
`

test.each(['key', 'password'] as const)('Paramiko reaches a database by a %s, and nothing else', async (way) => {
  await using edge = await startSshEdge()
  await using server = await startBackend((socket) => socket.pipe(socket))
  const user = freshHostname()
  const { password, routed } = temporaryPassword()
  const database = { port: DATABASE_PORT, server: { host: '127.0.0.1', port: server.port } }
  edge.routes.set(user, { authorizedKeys: [edge.publicKey] }, [routed], database)
  const login = way === 'key' ? { username: user, key_filename: edge.file('id') } : { username: 'postgres', password }
  const about = { knownHosts: edge.file('known_hosts'), login: { ...login, port: edge.port }, port: DATABASE_PORT }
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', PROGRAM, JSON.stringify(about)], { signal: stop.signal })
  expect(stdout.trim().split('\n')).toEqual([
    'True',
    'True',
    expect.stringContaining('Administratively prohibited'),
    expect.stringContaining('Administratively prohibited'),
    'TCP forwarding request denied',
    'True',
    'True',
  ])
})
