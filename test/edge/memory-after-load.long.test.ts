import { connect } from 'node:net'
import { afterAll, expect, test, vi } from 'vitest'
import { memoryMb } from '../bench/usage.ts'
import { logIn } from '../support/edge/ssh2-client.ts'
import { startWholeEdge } from '../support/edge/whole-edge.ts'

const edge = await startWholeEdge()
afterAll(() => edge[Symbol.asyncDispose]())

const CONNECTIONS = 64
/** Multiples of the memory before load: the minimum under load, and the maximum after it. */
const RISEN = 1.45
const FALLEN = 1.3
/** Maximum requests of one load, for when the memory does not reach `RISEN`. */
const REQUESTS = 40_000

/** Sends requests, each on a new connection, until `goesOn` returns false. */
async function visit(host: string, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const socket = connect({ port: edge.ports.http, host: '127.0.0.1' })
    socket.resume().on('error', () => socket.destroy())
    socket.write(`GET /${Math.random()} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    await new Promise((resolve) => socket.once('close', resolve))
  }
}

test('an edge returns memory to the system after load', { timeout: 600_000 }, async () => {
  using own = await logIn(edge)
  await own.serve((channel) => {
    channel.on('error', () => channel.destroy())
    channel.on('data', () => void channel.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const memory = () => memoryMb(edge.pid, 'Rss')
  const before = await memory()
  const host = `${own.hostname}.${edge.domain}`
  // After two loads, V8 has finished its own optimisations.
  for (const load of ['first', 'second', 'third']) {
    let [requests, hasRisen] = [0, false]
    const goesOn = () => !hasRisen && ++requests <= REQUESTS
    const visitors = Promise.all(Array.from({ length: CONNECTIONS }, () => visit(host, goesOn)))
    while (!hasRisen && requests <= REQUESTS) hasRisen = (await memory()) > RISEN * before
    await visitors
    await vi.waitFor(async () => expect(await memory(), load).toBeLessThan(FALLEN * before), { timeout: 60_000, interval: 500 })
  }
})
