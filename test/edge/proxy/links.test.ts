import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { startProxy, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { settableClock } from '../../support/clocks.ts'

/** Clock of the edge. It decides whether an upstream connection ended before the edge sent a request on it. */
const clock = settableClock()
const edge = await startProxy({ clock })

afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const before = (answer: (received: string, socket: Socket) => void) => tunnelBefore(edge, answer)
const asked = (received: string) => received.split('HTTP/1.1\r\n').length - 1

/** Sends a request on a new connection. @returns the response */
const ask = ({ host }: { readonly host: string }, method = 'GET') =>
  answered(edge.httpPort, `${method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

describe('upstream connections', () => {
  test('serve one request after the other', async () => {
    await using tunnel = await before((_received, socket) => socket.write(OK))
    await ask(tunnel)
    await ask(tunnel)
    expect(tunnel.received).toHaveLength(1)
  })

  test('that were closed while idle make the edge retry idempotent requests only', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) socket.write(OK)
      else socket.destroy()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/200 OK/)
    expect(tunnel.received).toHaveLength(2)
    expect(await ask(tunnel, 'POST')).toMatch(/502 [^]*upstream_reset/)
  })

  test('that end during a request do not make the edge retry it', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) return void socket.write(OK)
      clock.pass(5_000)
      socket.destroy()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/502 [^]*upstream_reset/)
    expect(tunnel.received.map(asked)).toEqual([2])
  })

  test('whose target disconnects during a request make it 502', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) socket.write(OK)
      else void tunnel[Symbol.asyncDispose]()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/502 [^]*upstream_reset/)
  })

  test('with data after the response are not reused', async () => {
    await using tunnel = await before((_received, socket) =>
      socket.write(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra`),
    )
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/ok$/)
    expect(tunnel.received).toHaveLength(2)
  })
})
