import type { Server, Socket } from 'node:net'

/** The sockets that `server` has taken, those amid a TLS handshake too, of which its `closeAllConnections` knows nothing. */
export function openSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}
