import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Stream } from 'node:stream'

/** Backend that sends raw responses, and records what it receives. */
export interface RawBackend extends AsyncDisposable {
  readonly port: number
  /** Received bytes of each connection as latin1, in the order of the connections. */
  readonly received: string[]
}

/** Starts a backend. `answer` is called with all bytes of a connection so far, whenever more arrive. */
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

/** Response of {@link carelessBackend}. */
export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Starts a backend with a careless parser: it responds once to each request line. */
export const carelessBackend = (): Promise<RawBackend> =>
  rawBackend((received, socket) => {
    const asked = received.split(' HTTP/1.1\r\n').length - 1
    const answers = (socket.bytesWritten + socket.writableLength) / OK.length
    for (let count = answers; count < asked; count++) socket.write(OK)
  })

/** Resolves when a stream has closed, also after an error, at which `once` of node:events would reject. */
export const closeOf = (stream: Stream): Promise<unknown> => new Promise((resolve) => stream.once('close', resolve))

/** Connection of a visitor that sends raw bytes. */
export interface RawVisitor {
  readonly socket: Socket
  /** Returns all bytes received so far, as latin1. */
  readonly text: () => string
  /** Resolves with all received bytes once the other side has closed. */
  readonly over: Promise<string>
  /** Resolves once the received bytes contain this text. */
  sees(text: string): Promise<void>
}

export function rawVisitor(port: number, first = ''): RawVisitor {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  const waiting = new Set<() => void>()
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    for (const check of waiting) check()
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
        const check = () => {
          if (!text.includes(wanted)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        socket.on('close', () => reject(new Error(`closed after ${JSON.stringify(text)}`)))
        check()
      }),
  }
}

/** Sends these bytes, and resolves with all bytes received until the edge closes. */
export const answered = (port: number, bytes: string): Promise<string> => rawVisitor(port, bytes).over
