import type { Socket } from 'node:net'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { block, FRAME, headers, http2Visitor, widestWindow } from '../../support/edge/http2.ts'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { settableClock } from '../../support/clocks.ts'
import { SOON } from '../../support/patience.ts'

/** HTTP/2 visitors that have ended their side of the connection and still read: they get the whole response. */

const MIB = 1_048_576

const clock = settableClock()
const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, clock, limits: { sweepMs: 20 } })
afterAll(() => edge.proxy.close())

/** Resolves when the edge has checked all deadlines again. */
async function swept(): Promise<void> {
  const { reads } = clock
  await vi.waitUntil(() => clock.reads >= reads + 10, SOON)
}

/** Opens an HTTP/2 visitor that sends one request and ends its side. */
async function halfClosed(host: string) {
  const { socket, seen, [Symbol.dispose]: dispose } = await http2Visitor(edge.httpsPort, host)
  let counted = 0
  let bytes = 0
  const got = (): number => {
    for (const { type, payload } of seen.slice(counted)) bytes += type === FRAME.data ? payload.length : 0
    counted = seen.length
    return bytes
  }
  const fields = block(Object.entries({ ':method': 'GET', ':scheme': 'https', ':authority': host, ':path': '/' }))
  socket.end(Buffer.concat([widestWindow, headers(1, fields)]))
  return {
    /** Reads until `wanted` bytes of the body have arrived, and then stops reading. */
    async takes(wanted: number) {
      socket.resume()
      await vi.waitUntil(() => got() >= wanted, { ...SOON, interval: 1 })
      socket.pause()
    },
    [Symbol.dispose]: dispose,
  }
}

describe('a visitor that has ended its side gets the whole response', () => {
  test('when it reads slowly', async () => {
    const LENGTH = 48 * MIB
    await using tunnel = await tunnelBefore(edge, (_received, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LENGTH}\r\n\r\n`)
      socket.write(Buffer.alloc(LENGTH))
    })
    using visitor = await halfClosed(tunnel.host)
    for (let wanted = 4 * MIB; wanted <= LENGTH; wanted += 4 * MIB) {
      await visitor.takes(wanted)
      clock.pass(1_500)
      await swept()
    }
    await vi.waitUntil(() => edge.records.length === 1, SOON)
    expect(edge.records.pop()).toMatchObject({ status: 200, reason: null, bytesOut: LENGTH })
  })

  test('when the backend sends slowly', async () => {
    let backend: Socket | undefined
    await using tunnel = await tunnelBefore(edge, (_received, socket) => {
      backend = socket
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
    })
    using visitor = await halfClosed(tunnel.host)
    await vi.waitUntil(() => backend, SOON)
    for (let sent = 1; sent <= 5; sent++) {
      backend?.write('x')
      await visitor.takes(sent)
      clock.pass(6_000)
      await swept()
    }
    await vi.waitUntil(() => edge.records.length === 1, SOON)
    expect(edge.records.pop()).toMatchObject({ status: 200, reason: null, bytesOut: 5 })
  })
})
