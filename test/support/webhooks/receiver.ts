import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

/** Message that a receiver got. */
export interface Received {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Time of arrival of the whole body, as `performance.now()`. */
  readonly at: number
}

/** Body of a message. */
export interface MessageBody {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>> & { readonly sessionId: string; readonly sequence: number }
}

export interface Receiver extends AsyncDisposable {
  readonly port: number
  readonly received: readonly Received[]
  /** Bodies of the messages so far. */
  readonly bodies: () => readonly MessageBody[]
}

/** Answers a message; `index` counts from 0. */
export type Answer = (response: ServerResponse, message: Received, index: number) => void

const thanks: Answer = (response) => response.end('thanks')

/** Starts a receiver on all addresses of this machine, which answers 200 by default. */
export async function startReceiver(answer: Answer = thanks): Promise<Receiver> {
  const received: Received[] = []
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const message = { headers: request.headers as Record<string, string>, body, at: performance.now() }
    received.push(message)
    answer(response, message, received.length - 1)
  }
  // A sender that stops, or that is killed, breaks off its request.
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy())
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    received,
    bodies: () => received.map(({ body }) => JSON.parse(body) as MessageBody),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Returns the address of this machine at which a service sees it. */
export async function ownAddress(serviceUrl: string): Promise<string> {
  const { hostname, port } = new URL(serviceUrl)
  const socket = connect({ host: hostname, port: Number(port) })
  try {
    await once(socket, 'connect')
    return socket.localAddress ?? ''
  } finally {
    socket.destroy()
  }
}

/** Verifies a message by the published library. @throws WebhookVerificationError */
export const verify = (secret: string, { headers, body }: Received): unknown => new Webhook(secret).verify(body, headers)
