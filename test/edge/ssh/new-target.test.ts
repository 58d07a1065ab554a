import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { answered, rawVisitor } from '../../support/edge/raw-http.ts'
import { running, sshUser, type SshUser } from '../../support/edge/openssh.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Tunnel whose `target` changes while its OpenSSH client stays connected. */

const cleanup = new AsyncDisposableStack()
let edge: WholeEdge
let user: SshUser
beforeAll(async () => {
  edge = cleanup.use(await startWholeEdge())
  user = cleanup.use(await sshUser(edge))
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  await cleanup.disposeAsync()
})

/** Starts a server that responds with its name, also to each chunk of an upgraded connection. @returns its address */
async function target(name: string): Promise<string> {
  const server: Server = createServer((_, res) => res.end(name))
  server.on('upgrade', (_, socket) => {
    socket.on('error', () => socket.destroy()).on('end', () => socket.end())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.on('data', (chunk: Buffer) => socket.write(`<${name} ${chunk.toString()}>`))
  })
  server.listen(0, '127.0.0.1')
  cleanup.defer(() => void server.close())
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

test('after a change of target, upgraded connections keep the old one, and new requests reach the new one', async () => {
  const [old, next] = [await target('old'), await target('next')]
  const hostname = freshHostname()
  const aim = (at: string) => edge.set(hostname, { authorizedKeys: [user.publicKey], target: at })
  const host = `Host: ${hostname}.${edge.domain}\r\n`
  const get = async () =>
    (await answered(edge.ports.http, `GET / HTTP/1.1\r\n${host}Connection: close\r\n\r\n`)).split('\r\n').at(-1)
  await aim(old)
  await using client = running([
    'ssh',
    ...user.options,
    '-p',
    String(edge.ports.ssh),
    '-R',
    `${hostname}:80`,
    `${hostname}@127.0.0.1`,
  ])
  await vi.waitFor(async () => expect(await get(), client.said()).toBe('old'), SOON)

  const upgraded = async (name: string) => {
    const visitor = rawVisitor(edge.ports.http, `GET /chat HTTP/1.1\r\n${host}${UPGRADE}\r\n`)
    await visitor.sees('101 Switching Protocols')
    visitor.socket.write('a')
    await visitor.sees(`<${name} a>`)
    return visitor
  }
  // An idle keep-alive connection of a visitor, whose next request reaches the new target.
  const patient = rawVisitor(edge.ports.http, `GET / HTTP/1.1\r\n${host}\r\n`)
  await patient.sees('old')
  const first = await upgraded('old')

  await aim(next)
  expect(await get()).toBe('next')
  patient.socket.write(`GET / HTTP/1.1\r\n${host}\r\n`)
  await patient.sees('next')
  first.socket.write('b')
  await first.sees('<old b>')
  const second = await upgraded('next')
  for (const letter of ['c', 'd']) {
    first.socket.write(letter)
    second.socket.write(letter)
    await first.sees(`<old ${letter}>`)
    await second.sees(`<next ${letter}>`)
  }
  expect(await get()).toBe('next')
  for (const { socket } of [first, second, patient]) socket.end()
  await Promise.all([first, second, patient].map(({ over }) => over))
})
