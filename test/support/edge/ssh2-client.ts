import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { Client, type ClientChannel, type ConnectConfig } from 'ssh2'
import { openSshPrivateKey, publicLine } from '../../../operator/endpoint/openssh.ts'
import { SOON } from '../patience.ts'
import type { WholeEdge } from './whole-edge.ts'

/** Internal protocol object of ssh2's client, which can send messages that no correct client sends. */
interface Protocol {
  authPassword(user: string, password: string): void
  tcpipForward(host: string, port: number, wantReply: boolean): void
  ping(): void
  rekey(): void
  /** State of a running key exchange. */
  readonly _kexinit: Buffer | undefined
  readonly _packetRW: {
    readonly write: {
      readonly allocStart: number
      alloc(length: number): Buffer
      finalize(packet: Buffer): Buffer | null
    }
  }
}

const packets = createRequire(import.meta.url)('ssh2/lib/protocol/utils.js') as {
  sendPacket(protocol: Protocol, packet: Buffer | null): boolean
}

export const protocolOf = (client: Client): Protocol => (client as unknown as { readonly _protocol: Protocol })._protocol

/** Returns the client's socket, for a test to pause or break. */
export const socketOf = (client: Client): Socket => (client as unknown as { readonly _sock: Socket })._sock

/** Handlers of received messages, under ssh2's names. */
interface Handlers {
  CHANNEL_OPEN(protocol: object, info: { readonly sender: number; readonly window: number }): void
  CHANNEL_WINDOW_ADJUST(protocol: object, channel: number, bytes: number): void
}

export const handlersOf = (client: Client): Handlers =>
  (client as unknown as { readonly _protocol: { readonly _handlers: Handlers } })._protocol._handlers

/** Sends any message of the SSH protocol, encrypted like the others. */
export function sendMessage(client: Client, payload: Uint8Array): void {
  const protocol = protocolOf(client)
  const { write } = protocol._packetRW
  const packet = write.alloc(payload.length)
  packet.set(payload, write.allocStart)
  packets.sendPacket(protocol, write.finalize(packet))
}

/** Creates a key pair in the format of OpenSSH. About one in 400 keys that ssh2 generates cannot be read. */
export function newKey(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey } = generateKeyPairSync('ed25519')
  return { privateKey: openSshPrivateKey(privateKey), publicKey: publicLine(privateKey) }
}

/** Key pair that many tests share. */
export const KEY = newKey()

/**
 * Creates a client. ssh2 reports each cause of a lost connection as an error: after the edge's disconnect message, a reset of the socket may follow. Without
 * this listener, an error after the one that a test waits for would end the process.
 */
export function sshClient(): Client {
  return new Client().on('error', () => undefined)
}

export interface LoggedIn extends Disposable {
  readonly client: Client
  readonly hostname: string
  /** Resolves when the connection has closed. */
  readonly gone: Promise<void>
  /** Accepts forwarded connections, and calls `serve` with each channel. */
  serve(connection: (channel: ClientChannel) => void): Promise<void>
}

/**
 * Logs in to a new tunnel by key, with a client of ssh2 that a test can make misbehave. @throws Error when the login is rejected
 */
export async function logIn(edge: Pick<WholeEdge, 'ports' | 'set'>, options: Partial<ConnectConfig> = {}): Promise<LoggedIn> {
  const hostname = options.username ?? randomBytes(8).toString('hex')
  if (options.username === undefined) await edge.set(hostname, { authorizedKeys: [KEY.publicKey] })
  const client = sshClient()
  const gone = new Promise<void>((resolve) => {
    client.once('close', () => resolve())
  })
  await new Promise<void>((resolve, reject) => {
    client.once('ready', () => resolve())
    client.once('error', reject)
    client.connect({
      ...{ host: '127.0.0.1', port: edge.ports.ssh, username: hostname, privateKey: KEY.privateKey },
      ...{ readyTimeout: SOON.timeout, ...options },
    })
  })
  client.on('error', () => client.destroy())
  return {
    ...{ client, hostname, gone },
    serve(connection) {
      client.on('tcp connection', (_, accept) => connection(accept()))
      return new Promise((resolve, reject) => {
        client.forwardIn(hostname, 80, (error) => (error ? reject(error) : resolve()))
      })
    },
    [Symbol.dispose]: () => void client.destroy(),
  }
}
