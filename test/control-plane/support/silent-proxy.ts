import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** TCP proxy on loopback that can go silent like a firewall that drops packets: it forwards neither data nor FIN nor RST. */
export interface SilentProxy extends AsyncDisposable {
  /** `https://127.0.0.1:port` */
  readonly server: string
  /** Silences the existing connections, and with `all` also new ones. */
  silence(what: 'existing' | 'all'): void
  /** Forwards new connections again. Silenced connections stay silent. */
  restore(): void
}

export async function startSilentProxy(port: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>()
  const silenced = new WeakSet<Socket>()
  let allSilent = false

  function hold(socket: Socket): void {
    silenced.add(socket)
    socket.pause()
  }

  function forward(from: Socket, to: Socket): void {
    sockets.add(from)
    from.on('data', (chunk) => {
      if (!silenced.has(from)) to.write(chunk)
    })
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      if (!silenced.has(from)) to.destroy()
    })
  }

  const listener = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    forward(client, upstream)
    forward(upstream, client)
    if (allSilent) [client, upstream].forEach(hold)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')

  return {
    server: `https://127.0.0.1:${address.port}`,
    silence(what) {
      allSilent = what === 'all'
      sockets.forEach(hold)
    },
    restore() {
      allSilent = false
    },
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close')
      listener.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
