import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { openChannel } from '../support/channel-recorder.ts'
import { freshHostname, startBackend, startSshEdge } from '../support/ssh-edge.ts'

const GRACE_MS = 1_500
/** Connections look at their time twice a second. */
const TICK_MS = 500
const never = new AbortController().signal
const soon = { timeout: 10_000, interval: 10 }

/** A stock client that is older than the grace, and cancels its forward. */
async function cancelled() {
  const edge = await startSshEdge({ forwardGraceMs: GRACE_MS })
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
  const control = ['-S', edge.file('control')]
  const forward = ['-R', `${hostname}:80:127.0.0.1:9`]
  const client = edge.ssh({ user: hostname, args: ['-N', '-M', ...control, ...forward] })
  if (!(await edge.sessions.waitFor(hostname, 10_000, never))) throw new Error('no session came')
  await sleep(GRACE_MS + TICK_MS)
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
    await sleep(2 * TICK_MS)
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
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(`Add -R ${hostname}:80:localhost:PORT.`)
    await vi.waitFor(() => expect(edge.records.at(-1)).toMatchObject({ type: 'disconnect', reason: 'no_forward' }), soon)
    expect(edge.records.at(-1)?.durationMs).toBeGreaterThan(2 * GRACE_MS)
  })
})
