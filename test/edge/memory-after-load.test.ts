import { connect } from 'node:net'
import { afterAll, expect, test, vi } from 'vitest'
import { memoryMb } from '../bench/process-usage.ts'
import { logIn } from '../support/edge/ssh2-client.ts'
import { startWholeEdge } from '../support/edge/whole-edge.ts'

const edge = await startWholeEdge()
afterAll(() => edge[Symbol.asyncDispose]())

const CONNECTIONS = 64
/** Times the memory before load: enough of a rise to be seen, and the most that is left of it. */
const RISEN = 1.45
const FALLEN = 1.3
/** Where V8 takes less than that, this was load. */
const REQUESTS = 40_000

/** Asks over one connection after the other until `goesOn` says false. */
async function visit(host: string, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const socket = connect({ port: edge.ports.http, host: '127.0.0.1' })
    socket.resume().on('error', () => socket.destroy())
    socket.write(`GET /${Math.random()} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    await new Promise((resolve) => socket.once('close', resolve))
  }
}

test('an edge gives memory back after load', { timeout: 600_000 }, async () => {
  using own = await logIn(edge)
  await own.serve((channel) => {
    channel.on('error', () => channel.destroy())
    channel.on('data', () => void channel.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const memory = () => memoryMb(edge.pid, 'Rss')
  const before = await memory()
  const host = `${own.hostname}.${edge.domain}`
  // By the third, V8 has nothing left to do by itself.
  for (const load of ['first', 'second', 'third']) {
    let [requests, hasRisen] = [0, false]
    const goesOn = () => !hasRisen && ++requests <= REQUESTS
    const visitors = Promise.all(Array.from({ length: CONNECTIONS }, () => visit(host, goesOn)))
    while (!hasRisen && requests <= REQUESTS) hasRisen = (await memory()) > RISEN * before
    await visitors
    await vi.waitFor(async () => expect(await memory(), load).toBeLessThan(FALLEN * before), { timeout: 60_000, interval: 500 })
  }
})
