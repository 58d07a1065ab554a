import { Agent, request } from 'node:https'

/** Request as it is sent. */
export interface Outgoing {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Source address, one of this machine. */
  readonly from?: string | undefined
}

/** Response as received, with its body as text. */
export interface Incoming {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}

export interface HttpsClient extends Disposable {
  send(url: string, outgoing: Outgoing): Promise<Incoming>
}

/** Creates a client that reuses its connections and trusts `ca` alone. */
export function createHttpsClient(ca: string): HttpsClient {
  const agent = new Agent({ ca, keepAlive: true })

  function send(url: string, { method, headers, body, from }: Outgoing): Promise<Incoming> {
    return new Promise((resolve, reject) => {
      const sent = request(url, { agent, method, headers, ...(from !== undefined && { localAddress: from }) }, (res) => {
        let text = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (text += chunk))
        res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }))
        res.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  return { send, [Symbol.dispose]: () => agent.destroy() }
}
