import { readFile } from 'node:fs/promises'
import { vi } from 'vitest'
import { SOON } from '../patience.ts'
import { answered } from './raw-http.ts'
import { logIn, type LoggedIn } from './ssh2-client.ts'
import type { WholeEdge } from './whole-edge.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest'

/** Tunnel that attacks must not disturb: its client and its visitors behave correctly. */
export interface Honest extends Disposable {
  readonly hostname: string
  /** Expects a correct response soon; requests are repeated until then. */
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
      vi.waitFor(async () => {
        const answer = await answered(edge.ports.http, request)
        if (!answer.endsWith('honest')) throw new Error(`unexpected response ${JSON.stringify(answer)}: ${edge.logged()}`)
      }, SOON),
    [Symbol.dispose]: () => own[Symbol.dispose](),
  }
}

/** Bytes in the kernel's queues for one end of a TCP connection over IPv4 on this machine. */
export interface SocketQueues {
  readonly localPort: number
  readonly remotePort: number
  /** Bytes sent by the program, and not acknowledged by the other end. */
  readonly toSend: number
  /** Bytes received, and not read by the program. */
  readonly received: number
}

const LINE = /^ *\d+: \w+:(\w+) \w+:(\w+) \w+ (\w+):(\w+) /

/** Returns the current queues of all connections (proc_net_tcp(5)). */
export async function socketQueues(): Promise<readonly SocketQueues[]> {
  const lines = (await readFile('/proc/net/tcp', 'latin1')).split('\n')
  return lines.flatMap((line) => {
    const [localPort, remotePort, toSend, received] = (LINE.exec(line) ?? []).slice(1).map((hex) => parseInt(hex, 16))
    if (localPort === undefined || remotePort === undefined || toSend === undefined || received === undefined) return []
    return [{ localPort, remotePort, toSend, received }]
  })
}

/** Pseudo-random mutations of bytes, the same ones for the same seed. */
export interface Mutator {
  /** Returns an integer from 0 to below `bound`. */
  readonly below: (bound: number) => number
  readonly pick: <T>(from: readonly [T, ...T[]]) => T
  readonly bytes: (length: number) => Buffer
  /** Returns the bytes with some flipped, removed, doubled or inserted. */
  readonly mutate: (bytes: Buffer) => Buffer
}

/** Creates a generator of pseudo-random numbers, mulberry32, which is good enough for test data. */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Bytes that cause errors in parsers more often than random ones. */
const TELLING = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  ',',
  '\x7f\xff\xff\xff',
  '\xff\xff\xff\xff',
  '\x80\0\0\0',
  '\0\0\0\0',
  '\0\0\0\x01',
].map((text) => Buffer.from(text, 'latin1'))

/** Creates a mutator with this seed. */
export function createMutator(seed: number): Mutator {
  const next = generator(seed)
  const below = (bound: number) => Math.floor(next() * bound)
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => below(256)))

  const put = (into: Buffer, at: number, what: Buffer, instead = 0) =>
    Buffer.concat([into.subarray(0, at), what, into.subarray(at + instead)])

  const changes: readonly ((from: Buffer, at: number) => Buffer)[] = [
    (from, at) => put(from, at, bytes(1), 1),
    (from, at) => put(from, at, bytes(1 + below(8))),
    (from, at) => put(from, at, TELLING[below(TELLING.length)] ?? bytes(4), below(2) * 4),
    (from, at) => put(from, at, Buffer.alloc(0), 1 + below(16)),
    (from, at) => put(from, at, from.subarray(at, at + 1 + below(64))),
    (from, at) => from.subarray(0, at),
    (from, at) => put(from, at, Buffer.alloc(1 + below(4_096), below(256))),
  ]

  return {
    below,
    pick: (from) => from[below(from.length)] ?? from[0],
    bytes,
    mutate(from) {
      let mutated = from
      for (let count = 1 + below(4); count > 0; count--) {
        const change = changes[below(changes.length)]
        if (change) mutated = change(mutated, below(mutated.length + 1))
      }
      return mutated
    },
  }
}
