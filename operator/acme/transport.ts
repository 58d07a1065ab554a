import { Agent, request } from 'node:https'
import { rootCertificates } from 'node:tls'
import { AcmeError } from './acme-error.ts'

/** Answer in the form that acme-client expects: `data` is parsed JSON, or text when the content type is not JSON. */
export interface TransportResponse {
  readonly status: number
  /** Header fields, names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly data: unknown
}

export interface Sent {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** Requests to one certificate authority. */
export interface Transport extends Disposable {
  /**
   * Sends one request, without retries or redirects.
   * @throws AcmeError `acme_unreachable`, `acme_invalid_answer`
   */
  send(url: string, sent: Sent): Promise<TransportResponse>
}

/** Maximum size of a response in bytes. A chain of certificates has about 5 KB. */
const MAX_BYTES = 1024 * 1024
const MAX_CONNECTIONS = 8
const TIMEOUT_MS = 15_000

/**
 * Creates the transport of a CA. It replaces that of acme-client, which has no time limit, and whose trusted roots and retries are settings of
 * the whole process.
 * @param caBundle PEM of roots that are trusted beside the public ones
 */
export function createTransport(caBundle: string | undefined, timeoutMs = TIMEOUT_MS): Transport {
  const ca = caBundle === undefined ? undefined : [...rootCertificates, caBundle]
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, ...(ca && { ca }) })

  async function send(url: string, { method, headers, body }: Sent): Promise<TransportResponse> {
    const target = URL.parse(url)
    if (target?.protocol !== 'https:') {
      throw new AcmeError('acme_invalid_answer', `the CA names the URL ${JSON.stringify(url.slice(0, 200))}, which is not https`)
    }
    const { status, fields, text } = await exchange(target, { method, headers, body })
    return { status, headers: fields, data: parsed(text, fields['content-type'] ?? '', target) }
  }

  function exchange(target: URL, { method, headers, body }: Sent): Promise<Exchanged> {
    const { promise, resolve, reject } = Promise.withResolvers<Exchanged>()
    const fail = (cause: Error) => reject(unreachable(target, cause))
    const outgoing = request(target, {
      method,
      agent,
      signal: AbortSignal.timeout(timeoutMs),
      headers: { 'User-Agent': 'mooring', Accept: '*/*', ...headers, ...(body !== undefined && lengthOf(body)) },
    })
    outgoing.once('error', fail)
    outgoing.once('response', (incoming) => {
      const chunks: Buffer[] = []
      let size = 0
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length
        chunks.push(chunk)
        if (size > MAX_BYTES) incoming.destroy(new Error(`its answer is longer than ${MAX_BYTES} bytes`))
      })
      incoming.once('error', fail)
      incoming.once('end', () => {
        const fields = Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
        resolve({ status: incoming.statusCode ?? 0, fields, text: Buffer.concat(chunks).toString('utf8') })
      })
    })
    outgoing.end(body)
    return promise
  }

  return { send, [Symbol.dispose]: () => agent.destroy() }
}

interface Exchanged {
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
  readonly text: string
}

const lengthOf = (body: string) => ({ 'Content-Length': String(Buffer.byteLength(body)) })

function unreachable({ host }: URL, cause: Error): AcmeError {
  const why = cause.name === 'AbortError' || cause.name === 'TimeoutError' ? 'it did not answer in time' : cause.message
  return new AcmeError('acme_unreachable', `the certificate authority ${host} cannot be reached: ${why}`, { cause })
}

function parsed(text: string, contentType: string, { host }: URL): unknown {
  if (!/^application\/([a-z.-]+\+)?json\b/i.test(contentType) || text === '') return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new AcmeError('acme_invalid_answer', `the certificate authority ${host} has sent an answer that is not JSON`, { cause })
  }
}
