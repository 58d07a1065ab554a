import { connect, type Socket } from 'node:net'
import type { AdminTarget } from '../../../operator/engines/engine.ts'

/** Pause in ms before a connection that the server closed is opened again. */
const PAUSE_MS = 50

/**
 * Holds `size` connections that never log in. The server closes each of them after a while, or at once when it has no free slot, and each is
 * then opened again.
 */
export function crowd({ host, port }: Pick<AdminTarget, 'host' | 'port'>, size: number): Disposable {
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let isOver = false

  function open(): void {
    const socket = connect(port, host).resume()
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      sockets.delete(socket)
      if (isOver) return
      const timer = setTimeout(() => {
        timers.delete(timer)
        open()
      }, PAUSE_MS)
      timers.add(timer)
    })
  }

  for (let opened = 0; opened < size; opened++) open()
  return {
    [Symbol.dispose]() {
      isOver = true
      for (const timer of timers) clearTimeout(timer)
      for (const socket of sockets) socket.destroy()
    },
  }
}
