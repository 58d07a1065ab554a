import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { startProxy } from '../../support/edge/proxy-fixture.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { settableClock } from '../../support/edge/settable-clock.ts'
import { tunnelBefore } from '../../support/edge/tunnel-before.ts'

/** A link that ends soon after it was given a request had ended before: how soon that was is a matter of this clock alone. */
const clock = settableClock()
const edge = await startProxy({ clock })

afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const before = (answer: (received: string, socket: Socket) => void) => tunnelBefore(edge, answer)
const asked = (received: string) => received.split('HTTP/1.1\r\n').length - 1

/** The answer to a request on a connection of its own. */
const ask = ({ host }: { readonly host: string }, method = 'GET') =>
  answered(edge.httpPort, `${method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

describe('links', () => {
  test('serve one request after the other, and are closed when idle, but one', async () => {
    await using tunnel = await before((_received, socket) => socket.write(OK))
    await ask(tunnel)
    await ask(tunnel)
    expect(tunnel.received).toHaveLength(1)
  })

  test('that were closed meanwhile cost an idempotent request nothing', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) socket.write(OK)
      else socket.destroy()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/200 OK/)
    expect(tunnel.received).toHaveLength(2)
    expect(await ask(tunnel, 'POST')).toMatch(/502 [^]*upstream_reset/)
  })

  test('that end while a request is worked on are no reason to send it again', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) return void socket.write(OK)
      clock.pass(5_000)
      socket.destroy()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/502 [^]*upstream_reset/)
    expect(tunnel.received.map(asked)).toEqual([2])
  })

  test('whose target goes with a request are told as what they are', async () => {
    await using tunnel = await before((received, socket) => {
      if (asked(received) === 1) socket.write(OK)
      else void tunnel[Symbol.asyncDispose]()
    })
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/502 [^]*upstream_reset/)
  })

  test('on which more came than was asked for are not used again', async () => {
    await using tunnel = await before((_received, socket) =>
      socket.write(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra`),
    )
    await ask(tunnel)
    expect(await ask(tunnel)).toMatch(/ok$/)
    expect(tunnel.received).toHaveLength(2)
  })
})
