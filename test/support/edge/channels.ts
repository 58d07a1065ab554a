import { onTestFinished } from 'vitest'
import type { Channel, ChannelEvents } from '../../../edge/channels/channel.ts'
import type { Session } from '../../../edge/sessions.ts'
import { freshHostname, startBackend, startSshEdge } from './ssh-edge.ts'
import { SOON } from '../patience.ts'

/** Channel that records its events in order. */
export interface RecordedChannel {
  readonly channel: Channel
  readonly said: readonly string[]
  readonly received: () => Buffer
  readonly over: Promise<string>
}

const ORIGIN = { address: '203.0.113.9', port: 4321 }

/** Opens a channel, and ends its own side when the target has ended the other. */
export function openChannel(session: Session, on: Partial<ChannelEvents> = {}): RecordedChannel {
  const said: string[] = []
  const chunks: Buffer[] = []
  let finish: (how: string) => void = () => undefined
  const over = new Promise<string>((resolve) => {
    finish = resolve
  })
  const say = (text: string) => void said.push(text)
  const channel = session.open(ORIGIN, {
    opened() {
      say('opened')
      on.opened?.()
    },
    refused(why) {
      say(`refused ${why}`)
      finish(`refused ${why}`)
    },
    data(chunk) {
      if (on.data) on.data(chunk)
      else chunks.push(Buffer.from(chunk))
    },
    drained: () => on.drained?.(),
    ended() {
      say('ended')
      channel.end()
    },
    closed({ lost }) {
      const how = lost ? 'lost' : 'closed'
      say(how)
      finish(how)
    },
  })
  return { channel, said, received: () => Buffer.concat(chunks), over }
}

const never = new AbortController().signal

/** Starts the SSH side of an edge, and OpenSSH clients whose tunnels lead to an echo server. */
export async function startEchoTunnels() {
  const edge = await startSshEdge()
  const echo = await startBackend((socket) => socket.pipe(socket))

  async function sessionOf(hostname: string): Promise<Session> {
    const session = await edge.sessions.waitFor(hostname, SOON.timeout, never)
    if (!session) throw new Error(`no session within ${SOON.timeout} ms`)
    return session
  }

  /** Creates a tunnel that accepts the user's key, and a client that serves it until the test ends. */
  async function served(args: readonly string[] = ['-N'], config = {}) {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
    const client = edge.ssh({ user: hostname, args: [...args, '-R', `${hostname}:80:127.0.0.1:${echo.port}`] })
    onTestFinished(() => {
      client.kill('SIGKILL')
    })
    return { hostname, client, session: await sessionOf(hostname) }
  }

  async function echoed(session: Session, text = 'ping'): Promise<string> {
    const { channel, received, over } = openChannel(session)
    channel.write(Buffer.from(text))
    channel.end()
    await over
    return received().toString()
  }

  const recordsOf = (hostname: string) => edge.records.filter(({ tunnel }) => tunnel === `uid-${hostname}`)
  return { edge, echo, sessionOf, served, echoed, recordsOf }
}
