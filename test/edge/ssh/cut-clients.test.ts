import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { honest, type Honest } from '../../support/edge/attack-tools.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { logIn, protocolOf, socketOf, sshClient } from '../../support/edge/ssh2-client.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

let edge: WholeEdge
let other: Honest
beforeAll(async () => {
  edge = await startWholeEdge({ ssh: { forwardGraceMs: patient(60_000) } })
  other = await honest(edge)
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  other[Symbol.dispose]()
  await edge[Symbol.asyncDispose]()
})

/** Number of source addresses used. Each test has its own, so that limits by source do not affect the next test. */
let source = 0
const freshSource = () => `127.1.0.${++source}`

/** Ways to cut a connection. */
const CUTS: Readonly<Record<string, (socket: Socket) => void>> = {
  'a FIN': (socket) => socket.destroy(),
  'a RST': (socket) => socket.resetAndDestroy(),
}

describe.each(Object.keys(CUTS))('a client that disconnects with %s leaves no session', (how) => {
  const cut = (socket: Socket) => CUTS[how]?.(socket)
  const raw = async (bytes: string) => {
    const socket = connect({ host: '127.0.0.1', port: edge.ports.ssh, localAddress: freshSource() })
    await once(socket, 'connect')
    if (bytes !== '') await new Promise((resolve) => socket.write(bytes, resolve))
    return socket
  }
  const loggedIn = async () => logIn(edge, { localAddress: freshSource() })
  const stages: Readonly<Record<string, () => Promise<Socket>>> = {
    'before its identification': () => raw(''),
    'within its identification': () => raw('SSH-2.0-x'),
    'after its identification': () => raw('SSH-2.0-x\r\n'),
    'within its KEXINIT': () => raw('SSH-2.0-x\r\n\x00\x00\x04\x00\x06\x14'),
    async 'during the key exchange'() {
      const client = sshClient()
      client.connect({
        host: '127.0.0.1',
        port: edge.ports.ssh,
        username: 'x',
        password: 'x',
        localAddress: freshSource(),
        hostVerifier: () => false,
      })
      await once(client, 'connect')
      return socketOf(client)
    },
    async 'before its login'() {
      const client = sshClient()
      const asked = new Promise<void>((resolve) => {
        client.connect({
          host: '127.0.0.1',
          port: edge.ports.ssh,
          username: 'x',
          localAddress: freshSource(),
          authHandler: () => resolve(),
        })
      })
      await asked
      return socketOf(client)
    },
    'after its login': async () => socketOf((await loggedIn()).client),
    async 'after its forward request'() {
      const { client, hostname } = await loggedIn()
      protocolOf(client).tcpipForward(hostname, 80, true)
      return socketOf(client)
    },
    async 'during a later key exchange'() {
      const { client } = await loggedIn()
      protocolOf(client).rekey()
      return socketOf(client)
    },
    async 'while the edge opens a channel'() {
      const own = await loggedIn()
      const asked = own.serve(() => undefined)
      await asked
      void answered(edge.ports.http, `GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`)
      await once(own.client, 'tcp connection')
      return socketOf(own.client)
    },
    async 'in the middle of a response'() {
      const own = await loggedIn()
      await own.serve((channel) => void channel.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'))
      const visitor = connect(edge.ports.http, '127.0.0.1')
      visitor.on('error', () => visitor.destroy())
      visitor.write(`GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\n\r\n`)
      await once(visitor, 'data')
      return socketOf(own.client)
    },
  }

  test.each(Object.entries(stages))('%s', async (_stage, reach) => {
    const { sessions } = await edge.usage()
    const before = sessions
    cut(await reach())
    await vi.waitFor(async () => expect((await edge.usage()).sessions).toBeLessThanOrEqual(before), SOON)
    await other.expectServed()
  })
})
