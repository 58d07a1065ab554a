import { connect, type Socket } from 'node:net'

/** Connections beyond the capacity of a server in tests. */
const COUNT = 400
const PAUSE_MS = 20

/** Takes all connections of a server on loopback, without a login, and each one that becomes free. Returns the function that releases them. */
export function flood(port: number): () => void {
  const sockets = new Set<Socket>()
  let isReleased = false

  function take(): void {
    if (isReleased) return
    const socket = connect(port, '127.0.0.1')
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      sockets.delete(socket)
      setTimeout(take, PAUSE_MS)
    })
    // The end of a socket that is not read is not noticed.
    socket.resume()
  }

  for (let n = 0; n < COUNT; n++) take()
  return () => {
    isReleased = true
    for (const socket of sockets) socket.destroy()
  }
}
