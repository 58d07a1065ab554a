import type { Server, Socket } from 'node:net'

/**
 * How `server` is ended, to be made before it takes connections: it takes no more, and what is still open after the deadline is cut, connections amid a
 * TLS handshake too, of which its `closeAllConnections` knows nothing. Resolves when none is open.
 */
export function closerOf(server: Server): (deadlineMs: number) => Promise<void> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return async (deadlineMs) => {
    if (!server.listening) return
    const deadline = setTimeout(() => sockets.forEach((socket) => socket.destroy()), deadlineMs)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(deadline)
  }
}
