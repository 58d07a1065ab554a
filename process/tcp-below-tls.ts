import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'

/** Returns the TCP connection below a TLS connection of the server; undefined once it is closed. */
export type TcpBelow = (socket: TLSSocket) => Socket | undefined

/** Follows the connections of a TLS server by their addresses: a TLS socket does not reveal the TCP socket below it. */
export function followTcp(server: Server): TcpBelow {
  const open = new Map<string, Socket>()
  server.on('connection', (socket: Socket) => {
    const ends = endsOf(socket)
    if (ends === undefined) return
    open.set(ends, socket)
    socket.once('close', () => open.get(ends) === socket && open.delete(ends))
  })
  return (socket) => open.get(endsOf(socket) ?? '')
}

/** Key of a connection by its addresses and ports: unique among open connections. Undefined: its other end has disconnected. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket | TLSSocket): string | undefined {
  return remotePort === undefined ? undefined : [remoteAddress, remotePort, localAddress, localPort].join(' ')
}
