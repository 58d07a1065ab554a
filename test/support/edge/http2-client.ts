import { connect, type OutgoingHttpHeaders } from 'node:http2'
import { text } from 'node:stream/consumers'

/** Response to an HTTP/2 request. Fields are names and values in turn, in the order received. */
export interface Http2Answer {
  /** Statuses of interim responses, in order. */
  readonly interim: readonly (readonly string[])[]
  readonly status: number
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  /** Error code of the closed stream (RFC 9113, section 7). */
  readonly code: number | undefined
}

interface Sent {
  readonly body?: string
  /** Body that is sent after a response 100. */
  readonly onContinue?: string
  readonly trailers?: OutgoingHttpHeaders
}

export interface Http2Client extends AsyncDisposable {
  /** Sends a request, by default `GET /` of its host. @throws Error without a response */
  ask(fields?: readonly string[], sent?: Sent): Promise<Http2Answer>
}

/** Opens an HTTP/2 connection to this machine with Node's own client. */
export function http2Client(port: number, host: string): Http2Client {
  const large = { maxSendHeaderBlockLength: 1_000_000 }
  const session = connect(`https://127.0.0.1:${port}`, { servername: host, rejectUnauthorized: false, ...large })
  // Each stream reports the error itself.
  session.on('error', () => undefined)

  async function ask(fields: readonly string[] = [], { body, onContinue, trailers }: Sent = {}): Promise<Http2Answer> {
    const pseudo = { ':method': 'GET', ':path': '/', ':scheme': 'https', ':authority': host }
    const raw = [...fields]
    for (const [name, value] of Object.entries(pseudo)) if (!raw.includes(name)) raw.unshift(name, value)
    const endStream = body === undefined && onContinue === undefined
    const stream = session.request(raw, { endStream, waitForTrailers: trailers !== undefined })
    const interim: string[][] = []
    const later: string[] = []
    stream.on('headers', (_headers, _flags, block: unknown) => interim.push(block as string[]))
    stream.on('trailers', (_headers, _flags, block: unknown) => later.push(...(block as string[])))
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}))
    stream.on('continue', () => stream.end(onContinue))
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    const responded = new Promise<string[]>((resolve, reject) => {
      stream.once('response', (_headers, _flags, block: unknown) => resolve(block as string[])).once('error', reject)
    })
    if (body !== undefined) stream.end(body)
    const answer = await responded
    const seen = await text(stream)
    await closed
    const status = Number(answer[answer.indexOf(':status') + 1])
    return { interim, status, fields: answer, body: seen, trailers: later, code: stream.rstCode }
  }

  return {
    ask,
    async [Symbol.asyncDispose]() {
      if (session.destroyed) return
      const gone = new Promise<void>((resolve) => session.once('close', resolve))
      session.destroy()
      await gone
    },
  }
}
