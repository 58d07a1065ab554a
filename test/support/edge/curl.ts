import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Transports of visitors: HTTP/1.1 with and without TLS, and HTTP/2 over TLS. The edge does not support HTTP/2 without TLS. */
export type Transport = 'http' | 'https' | 'h2'
export const TRANSPORTS: readonly Transport[] = ['http', 'https', 'h2']

export interface CurlAnswer {
  readonly status: number
  /** Value of `Mooring-Error`. */
  readonly reason: string | undefined
  readonly header: (name: string) => string | undefined
  readonly body: string
}

interface Asked {
  readonly transport: Transport
  /** Host name in the request and in the TLS handshake. */
  readonly host: string
  readonly path?: string
  /** Address of the edge; default: loopback. */
  readonly address?: string
  /** File with the certificate of the only trusted CA; without it no certificate is verified. */
  readonly ca?: string
  /** Wraps curl's command, for example to run it in another network. */
  readonly inside?: (command: readonly string[]) => readonly string[]
  /** Further arguments of curl. */
  readonly args?: readonly string[]
  /** Standard input of curl. */
  readonly input?: string
}

/** Sends a request to an edge on this machine with curl. @throws Error without a response */
export async function curl(
  { httpPort, httpsPort }: { readonly httpPort: number; readonly httpsPort: number },
  asked: Asked,
): Promise<CurlAnswer> {
  const command = commandOf(asked, asked.transport === 'http' ? httpPort : httpsPort)
  const [program = '', ...rest] = asked.inside?.(command) ?? command
  const running = run(program, rest)
  running.child.stdin?.end(asked.input)
  const { stdout } = await running
  const parts = stdout.split('\r\n\r\n')
  // Interim responses come first.
  const last = parts.findLastIndex((part) => part.startsWith('HTTP/'))
  const [head = '', body = ''] = parts.slice(last)
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim()
  return { status: Number(head.split(' ')[1]), reason: header('mooring-error'), header, body }
}

function commandOf(
  { transport, host, path = '/', address = '127.0.0.1', ca, args = [] }: Asked,
  port: number,
): readonly string[] {
  const version = transport === 'h2' ? '--http2' : '--http1.1'
  const trust = ca === undefined ? ['-k'] : ['--cacert', ca]
  const common = ['-sSi', ...trust, '--max-time', '20', version, '--resolve', `${host}:${port}:${address}`]
  return ['curl', ...common, ...args, `${transport === 'http' ? 'http' : 'https'}://${host}:${port}${path}`]
}
