import { afterAll, describe, expect, test, vi } from 'vitest'
import { Connection } from '../../../edge/ssh/connection.ts'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { openChannel } from '../../support/edge/channels.ts'
import { freshHostname, startBackend, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const { nextForwardGraceMs } = DEFAULT_SSH_LIMITS
const never = new AbortController().signal
const ticks = vi.spyOn(Connection.prototype, 'tick')

/** Milliseconds by which the edge's clock is ahead. */
let ahead = 0
const now = performance.now.bind(performance)
vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
afterAll(() => {
  vi.restoreAllMocks()
})

/** Resolves when the edge has checked its deadlines twice. */
async function swept(): Promise<void> {
  ticks.mockClear()
  await vi.waitFor(() => expect(ticks.mock.calls.length).toBeGreaterThan(1), SOON)
}

/** Starts an OpenSSH client that cancels its forward after the grace period. */
async function cancelled() {
  const edge = await startSshEdge()
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
  const control = ['-S', edge.file('control')]
  const forward = ['-R', `${hostname}:80:127.0.0.1:9`]
  const client = edge.ssh({ user: hostname, args: ['-N', '-M', ...control, ...forward] })
  if (!(await edge.sessions.waitFor(hostname, SOON.timeout, never))) throw new Error('no session came')
  ahead += nextForwardGraceMs
  await swept()
  const ask = (...args: string[]) => edge.ssh({ user: hostname, args: [...control, '-O', ...args] }).exited
  expect(await ask('cancel', ...forward)).toBe(0)
  await vi.waitFor(() => expect(edge.sessions.of(hostname)).toEqual([]), SOON)
  return { edge, hostname, client, ask }
}

describe('a client that cancels its forward long after its login', () => {
  test('may request another forward later, which serves', async () => {
    const { edge: own, hostname, ask } = await cancelled()
    await using edge = own
    await using greeter = await startBackend((socket) => socket.end('the other port'))
    ahead += nextForwardGraceMs / 2
    await swept()
    expect(await ask('forward', '-R', `${hostname}:80:127.0.0.1:${greeter.port}`)).toBe(0)
    const session = await edge.sessions.waitFor(hostname, SOON.timeout, never)
    if (!session) throw new Error('no session came')
    const { channel, received, over } = openChannel(session)
    channel.end()
    await over
    expect(received().toString()).toBe('the other port')
  })

  test('is disconnected with the missing command when it requests no other forward in time', async () => {
    const { edge: own, hostname, client } = await cancelled()
    await using edge = own
    ahead += nextForwardGraceMs
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(`-R 80:localhost:3000 ${hostname}@127.0.0.1`)
    await vi.waitFor(() => expect(edge.records.at(-1)).toMatchObject({ type: 'disconnect', reason: 'no_forward' }), SOON)
    expect(edge.records.at(-1)?.durationMs).toBeGreaterThan(2 * nextForwardGraceMs)
  })
})
