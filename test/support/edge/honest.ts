import { vi } from 'vitest'
import { answered } from './raw-http.ts'
import { logIn, type LoggedIn } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest'

/** Tunnel that attacks must not disturb: its client and its visitors behave correctly. */
export interface Honest extends Disposable {
  readonly hostname: string
  /** Expects a correct response within 15 seconds; requests are repeated until then. */
  expectServed(): Promise<void>
}

/** Starts a client with a tunnel. `localAddress` differs from the addresses of attackers. */
export async function honest(edge: WholeEdge, localAddress = '127.0.9.9'): Promise<Honest> {
  const own: LoggedIn = await logIn(edge, { localAddress })
  await own.serve((channel) => {
    channel.on('error', () => channel.destroy())
    channel.on('data', () => void channel.write(ANSWER))
  })
  const request = `GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`
  return {
    hostname: own.hostname,
    expectServed: () =>
      vi.waitFor(
        async () => {
          const answer = await answered(edge.ports.http, request)
          if (!answer.endsWith('honest')) throw new Error(`unexpected response ${JSON.stringify(answer)}: ${edge.logged()}`)
        },
        { timeout: 15_000, interval: 50 },
      ),
    [Symbol.dispose]: () => own[Symbol.dispose](),
  }
}
