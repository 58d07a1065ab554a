import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { Client, type ConnectConfig } from 'ssh2'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { protocolOf } from '../../support/edge/ssh2-client.ts'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

const edge = await startSshEdge()

describe('a client without a login', () => {
  const kexinit = (length: number) => Buffer.concat([Buffer.of(0, 0, 0, length, 4, 20), Buffer.alloc(length - 2)])

  test.each([
    { does: 'speaks HTTP', bytes: Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n') },
    { does: 'identifies itself with protocol 1.5', bytes: Buffer.from('SSH-1.5-old\r\n') },
    { does: 'sends a packet that is too long', bytes: Buffer.from('SSH-2.0-x\r\n\x7f\xff\xff\xff\x04', 'latin1') },
    { does: 'sends an empty KEXINIT', bytes: Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), kexinit(12)]) },
    {
      does: 'requests a login before the key exchange',
      bytes: Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), Buffer.of(0, 0, 0, 12, 4, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]),
    },
    { does: 'sends a line without an end', bytes: Buffer.alloc(20_000, 'a') },
    { does: 'sends zeros', bytes: Buffer.alloc(100_000) },
  ])('that $does is disconnected', async ({ bytes }) => {
    const socket = connect(edge.port, '127.0.0.1')
    socket.on('error', () => socket.destroy())
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    socket.write(bytes)
    await closed
  })

  test('that guesses from many addresses is rejected; the journal has some of the failures, and the metric all', async () => {
    await using own = await startSshEdge({ refusalsPerTunnel: 5 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const guess = (localAddress: string) =>
      new Promise<string>((resolve) => {
        const client = new Client()
        client.once('ready', () => resolve('in'))
        client.once('error', (error) => resolve(error.message))
        client.connect({ host: '127.0.0.1', port: own.port, username: hostname, password: 'mt_guess', localAddress })
      })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => guess(`127.3.0.${index + 1}`)))
    expect(new Set(answers)).toEqual(new Set(['All configured authentication methods failed']))
    const counted = async () => (await own.registry.getSingleMetric('mooring_ssh_refused_logins_total')?.get())?.values
    await vi.waitFor(async () => expect(await counted()).toEqual([{ labels: { reason: 'no_credential' }, value: 20 }]), SOON)
    expect(own.records.map(({ type }) => type)).toEqual(Array.from({ length: 5 }, () => 'refused'))
  })

  test('that opens too many connections gets the reason on the next one', async () => {
    await using own = await startSshEdge({ handshakesPerSource: 2 })
    const idle = [1, 2].map(() => connect(own.port, '127.0.0.1'))
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once('data', resolve))))
    const third = connect(own.port, '127.0.0.1')
    const said = await new Promise<string>((resolve) => {
      let text = ''
      third.on('data', (data) => (text += data.toString('latin1')))
      third.once('close', () => resolve(text))
    })
    expect(said).toContain('too many connections from your address')
    for (const socket of idle) socket.destroy()
  })

  test('that starts a second key exchange before its login is disconnected', async () => {
    const client = new Client()
    onTestFinished(() => void client.destroy())
    const said = new Promise<string>((resolve) => client.once('error', ({ message }) => resolve(message)))
    client.once('handshake', () => protocolOf(client).rekey())
    client.connect({ host: '127.0.0.1', port: edge.port, username: freshHostname(), authHandler: () => undefined })
    expect(await said).toContain(sentences.protocol)
  })

  test('from a source with many key exchanges and no login waits in a queue; successful logins do not count', async () => {
    // The queue serves 0 handshakes a second.
    await using own = await startSshEdge({ unfinishedPerSource: 3, slowHandshakesPerSecond: 0, loginGraceMs: patient(60_000) })
    const username = freshHostname()
    own.routes.set(username, { authorizedKeys: [own.publicKey] })
    const to = { host: '127.0.0.1', port: own.port, username }
    const privateKey = readFileSync(own.file('id'))
    const start = (options: Partial<ConnectConfig>) => {
      const client = new Client()
      onTestFinished(() => void client.destroy())
      client.connect({ ...to, readyTimeout: SOON.timeout, ...options })
      return client
    }
    const logIn = async (options: Partial<ConnectConfig> = {}) => {
      const client = start({ privateKey, ...options })
      await once(client, 'ready')
      client.destroy()
    }
    const exchangeKeys = () => start({ authHandler: () => undefined }).on('error', () => undefined)
    for (let count = 0; count < 4; count++) await logIn()
    for (let count = 0; count < 3; count++) {
      const client = exchangeKeys()
      await once(client, 'handshake')
      client.destroy()
    }
    await vi.waitFor(async () => {
      const client = exchangeKeys()
      let isServed = false
      client.once('handshake', () => (isServed = true))
      await once(client, 'connect')
      // A later client of another source is served first.
      await logIn({ localAddress: '127.0.0.2' })
      client.destroy()
      expect(isServed).toBe(false)
    }, SOON)
  })

  test('that is rejected and stays connected gets the reason on the first three connections, and none on later ones', async () => {
    await using own = await startSshEdge({ handshakesPerSource: 0, farewells: 3 })
    const sockets = Array.from({ length: 10 }, () => connect({ port: own.port, host: '127.0.0.1', allowHalfOpen: true }))
    const said = sockets.map((socket) => {
      socket.on('error', () => socket.destroy())
      const ended = Promise.race([once(socket, 'end'), once(socket, 'close')])
      return new Promise<string>((resolve) => {
        let text = ''
        socket.on('data', (data) => (text += data.toString('latin1')))
        void ended.then(() => resolve(text))
      })
    })
    const informed = (await Promise.all(said)).filter((text) => text.includes('too many connections from your address'))
    expect(informed).toHaveLength(3)
    for (const socket of sockets) socket.destroy()
  })
})
