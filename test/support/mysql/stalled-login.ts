import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { closeOf } from '../edge/raw-http.ts'

/** CLIENT_LONG_PASSWORD, CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH (MySQL Internals, "Capability Flags"). */
const CAPABILITIES = 0x1 | 0x200 | 0x8000 | 0x80000
const MAX_PACKET = 0x1000000
const UTF8MB4 = 45

/** Login that is stuck in its handshake. */
export interface StalledLogin extends Disposable {
  /** Resolves when the server closes the connection. */
  readonly closed: Promise<unknown>
}

/**
 * Begins a login, names an authentication plugin that the account does not use, and never answers the server's request to switch to the
 * right one. The server has read the account by then, and would accept the password that it had at that time.
 */
export async function stallLogin(port: number, user: string): Promise<StalledLogin> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const closed = closeOf(socket)
  await once(socket, 'data')
  socket.write(packet(1, response(user)))
  await requested(socket)
  return { closed, [Symbol.dispose]: () => void socket.destroy() }
}

/** MySQL Internals, "HandshakeResponse41". */
function response(user: string): Buffer {
  const head = Buffer.alloc(32)
  head.writeUInt32LE(CAPABILITIES, 0)
  head.writeUInt32LE(MAX_PACKET, 4)
  head.writeUInt8(UTF8MB4, 8)
  return Buffer.concat([head, Buffer.from(`${user}\0`), Buffer.from([0]), Buffer.from('no_such_plugin\0')])
}

function packet(sequence: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([body.length & 0xff, body.length >> 8, 0, sequence]), body])
}

async function requested(socket: Socket): Promise<void> {
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (answer[4] !== 0xfe) throw new Error(`the server asks for no other plugin: ${answer.toString('latin1')}`)
}
