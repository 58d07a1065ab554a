import type { Server, Socket } from 'node:net'
import { MooringError } from '../shared/errors.ts'

/** Address of a listener. `flag` is the setting to change when the port is in use, e.g. `--shared-port`. */
export interface ListenAddress {
  readonly address: string
  readonly port: number
  readonly flag: string
}

/**
 * Converts an error of `listen` into a sentence: MooringError `port_in_use`, `port_forbidden` or `address_unavailable`. Other errors are
 * returned unchanged.
 */
export function bindError(cause: NodeJS.ErrnoException, { address, port, flag }: ListenAddress): Error {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new MooringError('port_in_use', `port ${port} on ${address} is in use: choose another with ${flag}`, { cause })
    case 'EACCES':
      return new MooringError('port_forbidden', `no permission to use port ${port}: choose another with ${flag}`, { cause })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new MooringError('address_unavailable', `${address} is not an address of this machine`, { cause })
    default:
      return cause
  }
}

/**
 * Returns a function that closes `server`: it accepts no more connections, and after the deadline destroys those that are still open. That
 * includes connections in a TLS handshake, which `closeAllConnections` does not know. Resolves when no connection is open. Call `closerOf`
 * before the server listens.
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
