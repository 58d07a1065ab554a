import { afterAll, describe, expect, test, vi } from 'vitest'
import { Connection } from '../../../edge/ssh/connection.ts'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { openChannel } from '../../support/edge/channel-recorder.ts'
import { freshHostname, startBackend, startSshEdge } from '../../support/edge/ssh-edge.ts'

const { nextForwardGraceMs } = DEFAULT_SSH_LIMITS
const never = new AbortController().signal
const soon = { timeout: 10_000, interval: 10 }
const looks = vi.spyOn(Connection.prototype, 'tick')

/** Milliseconds that have passed for the edge beside those that did. */
let ahead = 0
const now = performance.now.bind(performance)
vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
afterAll(() => {
  vi.restoreAllMocks()
})

/** The edge has looked at what time alone decides, twice. */
async function looked(): Promise<void> {
  looks.mockClear()
  await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(1), soon)
}

/** A stock client that is older than the grace, and cancels its forward. */
async function cancelled() {
  const edge = await startSshEdge()
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
  const control = ['-S', edge.file('control')]
  const forward = ['-R', `${hostname}:80:127.0.0.1:9`]
  const client = edge.ssh({ user: hostname, args: ['-N', '-M', ...control, ...forward] })
  if (!(await edge.sessions.waitFor(hostname, 10_000, never))) throw new Error('no session came')
  ahead += nextForwardGraceMs
  await looked()
  const ask = (...args: string[]) => edge.ssh({ user: hostname, args: [...control, '-O', ...args] }).exited
  expect(await ask('cancel', ...forward)).toBe(0)
  await vi.waitFor(() => expect(edge.sessions.of(hostname)).toEqual([]), soon)
  return { edge, hostname, client, ask }
}

describe('a client that cancels its forward long after its login', () => {
  test('may take its time to ask for another, which serves', async () => {
    const { edge: own, hostname, ask } = await cancelled()
    await using edge = own
    await using greeter = await startBackend((socket) => socket.end('the other port'))
    ahead += nextForwardGraceMs / 2
    await looked()
    expect(await ask('forward', '-R', `${hostname}:80:127.0.0.1:${greeter.port}`)).toBe(0)
    const session = await edge.sessions.waitFor(hostname, 10_000, never)
    if (!session) throw new Error('no session came')
    const { channel, received, over } = openChannel(session)
    channel.end()
    await over
    expect(received().toString()).toBe('the other port')
  })

  test('and asks for no other in time is told how to, and disconnected', async () => {
    const { edge: own, hostname, client } = await cancelled()
    await using edge = own
    ahead += nextForwardGraceMs
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(`-R 80:localhost:3000 ${hostname}@127.0.0.1`)
    await vi.waitFor(() => expect(edge.records.at(-1)).toMatchObject({ type: 'disconnect', reason: 'no_forward' }), soon)
    expect(edge.records.at(-1)?.durationMs).toBeGreaterThan(2 * nextForwardGraceMs)
  })
})
