import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** How visitors come: HTTP/1.1 in the clear and over TLS, HTTP/2 over TLS. An edge speaks no HTTP/2 in the clear. */
export type Transport = 'http' | 'https' | 'h2'
export const TRANSPORTS: readonly Transport[] = ['http', 'https', 'h2']

export interface CurlAnswer {
  readonly status: number
  /** The value of `Mooring-Error`. */
  readonly reason: string | undefined
  readonly header: (name: string) => string | undefined
  readonly body: string
}

interface Asked {
  readonly transport: Transport
  /** Name that is visited, and named in the TLS handshake. */
  readonly host: string
  readonly path?: string
  /** Address of the edge; that of the loopback unless given. */
  readonly address?: string
  /** File with the certificate of the only authority that is trusted; none is asked for unless given. */
  readonly ca?: string
  /** Makes of curl's command the one that is run, as in another network. */
  readonly inside?: (command: readonly string[]) => readonly string[]
  /** Of curl. */
  readonly args?: readonly string[]
  /** Its standard input. */
  readonly input?: string
}

/** Visits an edge on this machine with curl. @throws when there is no answer */
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
  // Interim answers come before.
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
