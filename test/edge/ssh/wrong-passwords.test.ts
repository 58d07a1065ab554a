import { connect } from 'node:net'
import { Client } from 'ssh2'
import { expect, test, vi } from 'vitest'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { honest } from '../../support/edge/honest.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freshHostname, temporaryPassword } from '../../support/edge/ssh-edge.ts'

const MIB = 1024 * 1024
const soon = { timeout: 20_000, interval: 100 }
const { failedPerSource, failedPerSourceAndTunnel, refusalsPerTunnel, slowHandshakesPerSecond } = DEFAULT_SSH_LIMITS
const REFUSED = 'All configured authentication methods failed'
const TOO_MANY = sentences.refused('rate')
/** An edge's ident and a sentence; an offer of keys is longer. */
const FAREWELL_BYTES = 400

const GUESSES = 100_000
const ROUNDS = 10
const SOURCES = Array.from({ length: 8 }, (_, index) => `127.5.0.${index + 1}`)
/** Of each source at a time: fewer than those who may be there without a login. */
const AT_ONCE = 8
const OWNER = '127.5.1.1'

interface Attempt {
  readonly from: string
  readonly username: string
  readonly passwords: readonly string[]
}

interface Outcome {
  /** Passwords that were sent. */
  readonly sent: number
  /** `in`, or what was said at last. */
  readonly said: string
}

/** Logs in by one password after the other. */
function logIn({ ports }: WholeEdge, { from, username, passwords }: Attempt): Promise<Outcome> {
  const client = new Client()
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

/** Comes to guess, hears the edge's first words, and leaves: the cheapest way to cost an edge something. */
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
  /** Of the form that the API issues. */
  readonly password: string
  /** A right one that a tenant thought up. */
  readonly weak: string
}

/** Guesses until passwords from there are not compared any more. Resolves with the number of guesses. */
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
  // The last of them was not compared either.
  expect(sent).toBe(failedPerSource - failedPerSourceAndTunnel + 1)
  return failedPerSourceAndTunnel + 1 + sent
}

test('100,000 wrong passwords from some addresses cost an edge no memory, its journal little, and no valid login or visit', async () => {
  // In a minute that does not end: what the limits allow they allow once, on a machine of any speed.
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
  // All of the minute: what follows is not of this tunnel, or is let in.
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
      // While many are told why they are refused, others are closed without a word.
      if (said === '') continue
      if (!said.startsWith('SSH-2.0-Mooring')) heard.other.push(said)
      else if (said.length < FAREWELL_BYTES) heard.ident += 1
      // It has waited in the queue of its source, or has read what came together late.
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
    // They did not have to wait for the others.
    expect(ended).toBeLessThan(until)
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
  await vi.waitFor(async () => expect((await memory()) - first).toBeLessThan(8 * MIB), soon)

  const refused = [
    { labels: { reason: 'password' }, value: SOURCES.length * failedPerSourceAndTunnel },
    // That of the tenant, of each source; for an unknown name there is no tunnel to count for.
    { labels: { reason: 'rate' }, value: SOURCES.length },
  ]
  expect(await edge.metric('mooring_ssh_refused_logins_total')).toEqual(refused)
  expect(edge.logged()).toBe('')
}, 180_000)
