import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A backend that answers bytes as a test says, and keeps what it was sent. */
export interface RawBackend extends AsyncDisposable {
  readonly port: number
  /** All bytes of each connection, latin1, in the order of the connections. */
  readonly received: string[]
}

/** `answer` is called with all that a connection has sent so far, whenever more comes. */
export async function rawBackend(answer: (received: string, socket: Socket) => void): Promise<RawBackend> {
  const received: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const index = received.push('') - 1
    sockets.add(socket)
    socket.on('data', (chunk) => {
      const all = (received[index] ?? '') + chunk.toString('latin1')
      received[index] = all
      answer(all, socket)
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    received,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A visitor who writes bytes. */
export interface RawVisitor {
  readonly socket: Socket
  /** All that has come so far, latin1. */
  readonly text: () => string
  /** Resolves with all that came, once the other side has closed. */
  readonly over: Promise<string>
  /** Resolves once what came holds this text. */
  sees(text: string): Promise<void>
}

export function rawVisitor(port: number, first = ''): RawVisitor {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  const waiting = new Set<() => void>()
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    for (const look of waiting) look()
  })
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
  const over = new Promise<string>((resolve) => socket.on('close', () => resolve(text)))
  if (first !== '') socket.write(first, 'latin1')
  return {
    socket,
    text: () => text,
    over,
    sees: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!text.includes(wanted)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        socket.on('close', () => reject(new Error(`closed after ${JSON.stringify(text)}`)))
        look()
      }),
  }
}

/** What a visitor gets who sends these bytes, until the edge closes. */
export const answered = (port: number, bytes: string): Promise<string> => rawVisitor(port, bytes).over
