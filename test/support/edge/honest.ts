import { vi } from 'vitest'
import { answered } from './raw-http.ts'
import { logIn, type LoggedIn } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest'

/** A tunnel that others must not disturb: its client and its visitors do nothing wrong. */
export interface Honest extends Disposable {
  readonly hostname: string
  /** Visits it, again and again for a while; it is answered at last, or the test fails. */
  isServed(): Promise<void>
}

/** Starts one, from another address than those of `sources`. */
export async function honest(edge: WholeEdge, localAddress = '127.0.9.9'): Promise<Honest> {
  const own: LoggedIn = await logIn(edge, { localAddress })
  await own.serve((channel) => {
    channel.on('error', () => channel.destroy())
    channel.on('data', () => void channel.write(ANSWER))
  })
  const request = `GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`
  return {
    hostname: own.hostname,
    isServed: () =>
      vi.waitFor(
        async () => {
          const answer = await answered(edge.ports.http, request)
          if (!answer.endsWith('honest')) throw new Error(`it was answered ${JSON.stringify(answer)}: ${edge.logged()}`)
        },
        { timeout: 15_000, interval: 50 },
      ),
    [Symbol.dispose]: () => own[Symbol.dispose](),
  }
}
