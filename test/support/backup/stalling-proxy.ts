import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** TCP port before a server that can stop to pass bytes on, as a broken network does: connections stay open. */
export interface StallingProxy extends AsyncDisposable {
  readonly port: number
  /** Passes `bytes` more on in both directions together, then none. */
  stallAfter(bytes: number): void
  /** Passes all bytes on again. Those that were held back come first. */
  resume(): void
}

export async function openStallingProxy(target: number): Promise<StallingProxy> {
  const sockets = new Set<Socket>()
  let budget = Infinity

  function pass(from: Socket, to: Socket): void {
    sockets.add(from)
    from.on('data', (chunk: Buffer) => {
      if (budget <= 0) {
        from.pause()
        from.unshift(chunk)
        return
      }
      budget -= chunk.length
      if (!to.write(chunk)) from.pause()
    })
    to.on('drain', () => from.resume())
    from.on('end', () => to.end())
    from.on('error', () => undefined)
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
  }

  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target })
    pass(near, far)
    pass(far, near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    stallAfter: (bytes) => (budget = bytes),
    resume() {
      budget = Infinity
      for (const socket of sockets) socket.resume()
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
