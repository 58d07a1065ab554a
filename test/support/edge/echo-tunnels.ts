import { onTestFinished } from 'vitest'
import type { Session } from '../../../edge/session.ts'
import { openChannel } from './channel-recorder.ts'
import { freshHostname, startBackend, startSshEdge } from './ssh-edge.ts'

const never = new AbortController().signal

/** Starts the SSH side of an edge, and OpenSSH clients whose tunnels lead to an echo server. */
export async function startEchoTunnels() {
  const edge = await startSshEdge()
  const echo = await startBackend((socket) => socket.pipe(socket))

  async function sessionOf(hostname: string): Promise<Session> {
    const session = await edge.sessions.waitFor(hostname, 10_000, never)
    if (!session) throw new Error('no session within 10 s')
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
