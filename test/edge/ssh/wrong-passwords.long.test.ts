import { sshClient } from '../../support/edge/ssh2-client.ts'
import { connect } from 'node:net'
import { expect, test, vi } from 'vitest'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { honest } from '../../support/edge/attack-tools.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freshHostname, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

const MIB = 1024 * 1024
const { failedPerSource, failedPerSourceAndTunnel, refusalsPerTunnel, slowHandshakesPerSecond } = DEFAULT_SSH_LIMITS
const REFUSED = 'All configured authentication methods failed'
const TOO_MANY = sentences.refused('rate')
/** Maximum bytes of the edge's identification and a message. A KEXINIT is longer. */
const FAREWELL_BYTES = 400

const GUESSES = 5_000
const ROUNDS = 10
const SOURCES = Array.from({ length: 8 }, (_, index) => `127.5.0.${index + 1}`)
/** Connections of each source at a time, below the limit of connections without a login. */
const AT_ONCE = 8
const OWNER = '127.5.1.1'

interface Attempt {
  readonly from: string
  readonly username: string
  readonly passwords: readonly string[]
}

interface Outcome {
  /** Number of passwords sent. */
  readonly sent: number
  /** `in`, or the error's message. */
  readonly said: string
}

/** Logs in with one password after the other. */
function logIn({ ports }: WholeEdge, { from, username, passwords }: Attempt): Promise<Outcome> {
  const client = sshClient()
  const left = passwords.map((password) => ({ type: 'password' as const, username, password }))
  return new Promise((resolve) => {
    const settle = (said: string) => {
      client.destroy()
      resolve({ sent: passwords.length - left.length, said })
    }
    client.once('ready', () => settle('in'))
    client.once('error', (error) => settle(error.message))
    client.connect({
      ...{ host: '127.0.0.1', port: ports.ssh, username, localAddress: from },
      authHandler: (_left, _partial, next) => next(left.shift() ?? (false as never)),
    })
  })
}

/** Connects and disconnects after the edge's first bytes, as a cheap attack does. @returns the bytes */
function knock({ ports }: WholeEdge, from: string): Promise<string> {
  const socket = connect({ port: ports.ssh, host: '127.0.0.1', localAddress: from })
  let heard = ''
  socket.once('data', (chunk) => {
    heard = chunk.toString('latin1')
    socket.destroy()
  })
  socket.on('error', () => socket.destroy())
  socket.write('SSH-2.0-guess\r\n')
  return new Promise((resolve) => {
    socket.once('close', () => resolve(heard))
  })
}

interface Guessed {
  readonly hostname: string
  /** Valid password of the API. */
  readonly password: string
  /** Valid password chosen by a tenant. */
  readonly weak: string
}

/** Guesses until the edge no longer compares passwords from this source. @returns the number of guesses */
async function exhaust(edge: WholeEdge, from: string, { hostname, password, weak }: Guessed): Promise<number> {
  for (let count = 0; count < failedPerSourceAndTunnel; count++) {
    const outcome = await logIn(edge, { from, username: hostname, passwords: ['mt_guess'] })
    expect(outcome).toEqual({ sent: 1, said: REFUSED })
  }
  const tooMany = { sent: 1, said: expect.stringContaining(TOO_MANY) as string }
  expect(await logIn(edge, { from, username: hostname, passwords: [weak] })).toEqual(tooMany)
  expect(await logIn(edge, { from, username: hostname, passwords: [password] })).toEqual({ sent: 1, said: 'in' })
  const elsewhere = Array.from({ length: failedPerSource }, (_, index) => `mt_${index}`)
  let sent = 0
  for (let more = 1; more > 0 && sent < failedPerSource - failedPerSourceAndTunnel; sent += more)
    more = (await logIn(edge, { from, username: 'nobody', passwords: elsewhere.slice(sent) })).sent
  // The last of them was not compared.
  expect(sent).toBe(failedPerSource - failedPerSourceAndTunnel + 1)
  return failedPerSourceAndTunnel + 1 + sent
}

test(
  '5,000 wrong passwords leave memory and journal bounded, and valid logins and visits succeed',
  async () => {
    // The clock stands still, so that the limits by the minute apply once, on a machine of any speed.
    await using edge = await startWholeEdge({ clock: Date.now() })
    using other = await honest(edge)
    const [issued, weak] = [temporaryPassword(600_000), temporaryPassword(600_000, 'mt_weak')]
    const { password } = issued
    const hostname = freshHostname()
    await edge.set(hostname, {}, [issued.routed, weak.routed])
    const memory = async () => {
      const { heap, buffers } = await edge.usage()
      return heap + buffers
    }

    const counts = await Promise.all(SOURCES.map((from) => exhaust(edge, from, { hostname, password, weak: weak.password })))
    // The journal's limit of this minute is reached: later attempts belong to no tunnel, or succeed.
    const { connections } = await edge.records(hostname)
    expect(connections.filter(({ type }) => type === 'refused')).toHaveLength(refusalsPerTunnel)
    const before = counts.reduce((sum, count) => sum + count)
    let [begun, ended] = [before, before]
    const heard = { ident: 0, keyExchange: 0, other: [] as string[] }
    const started = performance.now()
    async function guess(from: string, until: number): Promise<void> {
      while (begun < until) {
        begun += 1
        const said = await knock(edge, from)
        ended += 1
        // Above the limit of farewells, connections close without a message.
        if (said === '') continue
        if (!said.startsWith('SSH-2.0-Mooring')) heard.other.push(said)
        else if (said.length < FAREWELL_BYTES) heard.ident += 1
        // The connection waited in the queue of its source, or read late.
        else heard.keyExchange += 1
      }
    }

    const used: number[] = []
    for (let round = 1; round <= ROUNDS; round++) {
      const until = Math.round(before + ((GUESSES - before) * round) / ROUNDS)
      const guessers = SOURCES.flatMap((from) => Array.from({ length: AT_ONCE }, () => guess(from, until)))
      expect(await logIn(edge, { from: OWNER, username: hostname, passwords: [password] })).toEqual({ sent: 1, said: 'in' })
      const [guesser = ''] = SOURCES
      expect(await logIn(edge, { from: guesser, username: hostname, passwords: [password] })).toEqual({ sent: 1, said: 'in' })
      await other.expectServed()
      used.push(await memory())
      await Promise.all(guessers)
    }

    expect(ended).toBe(GUESSES)
    expect(heard.other).toEqual([])
    expect(heard.ident).toBeGreaterThan(0)
    const seconds = Math.ceil((performance.now() - started) / 1000) + 1
    expect(heard.keyExchange).toBeLessThanOrEqual(SOURCES.length * slowHandshakesPerSecond * seconds)
    const [first = 0] = used
    expect(Math.max(...used) - first).toBeLessThan(24 * MIB)
    await vi.waitFor(async () => expect((await memory()) - first).toBeLessThan(8 * MIB), SOON)

    const refused = [
      { labels: { reason: 'password' }, value: SOURCES.length * failedPerSourceAndTunnel },
      // One login with the weak password for each source. Logins with unknown users count for no tunnel.
      { labels: { reason: 'rate' }, value: SOURCES.length },
    ]
    expect(await edge.metric('mooring_ssh_refused_logins_total')).toEqual(refused)
    expect(edge.logged()).toBe('')
  },
  patient(180_000),
)
