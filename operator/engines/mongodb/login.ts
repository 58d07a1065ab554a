import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Binary, BSON, type Document, MongoNetworkError } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { createConnectionsAhead } from '../connections-ahead.ts'
import { type AdminTarget, EngineCode, type EngineAdmin, type Tenant } from '../engine.ts'
import type { Scram } from '../scram.ts'
import type { Timeouts } from './connection.ts'
import { ServerCode } from './errors.ts'

interface VerifyDeps {
  readonly target: AdminTarget
  readonly timeouts: Timeouts
  readonly scram: Scram
}

/** Check of tenants' logins. Disposing closes connections that were opened in advance. */
export interface Verifier extends Disposable {
  /** Connects in advance for an imminent `verify` of the tenant. */
  readonly expect: (name: string) => void
  readonly verify: EngineAdmin['verify']
}

/** Creates a verifier that logs in as a tenant does, over the server's address. */
export function createVerifier({ target, timeouts, scram }: VerifyDeps): Verifier {
  const ahead = createConnectionsAhead(() => dial(target, timeouts.connectMs))
  return {
    expect: ahead.expect,
    verify: (tenant) => logIn(ahead.take(tenant.name), scram, tenant),
    [Symbol.dispose]: () => ahead[Symbol.dispose](),
  }
}

/**
 * Logs in as the tenant and disconnects (MongoDB, "Authentication" specification of drivers). The driver would open a pool and monitor the
 * server, and derive the password's key at each login; {@link Scram} caches the key.
 */
async function logIn(wire: Wire, scram: Scram, { name, password }: Tenant): Promise<void> {
  const exchange = scram.exchange(password, name)
  const refuse = (reply: Document): never => {
    const cause = new Error(typeof reply.errmsg === 'string' ? reply.errmsg : 'the server gave no reason')
    if (reply.code !== ServerCode.authenticationFailed)
      throw new MooringError(EngineCode.failed, 'the server did not process the login', { cause })
    throw new MooringError(EngineCode.loginRefused, `the login of ${name} does not work`, { cause })
  }
  try {
    const first = await wire.command({
      saslStart: 1,
      mechanism: exchange.mechanism,
      payload: new Binary(Buffer.from(exchange.first)),
      options: { skipEmptyExchange: true },
      $db: name,
    })
    if (first.ok !== 1) refuse(first)
    const answer = await exchange.answer(textOf(first))
    const last = await wire.command({
      saslContinue: 1,
      conversationId: first.conversationId as unknown,
      payload: new Binary(Buffer.from(answer)),
      $db: name,
    })
    if (last.ok !== 1) refuse(last)
    exchange.check(textOf(last))
    if (last.done !== true) throw new MooringError(EngineCode.failed, 'the server did not complete the login')
  } finally {
    wire.close()
  }
}

function textOf({ payload }: Document): string {
  return payload instanceof Binary ? Buffer.from(payload.buffer).toString('utf8', 0, payload.position) : ''
}

/** Opcode and header of MongoDB's messages (MongoDB documentation, "MongoDB Wire Protocol", "OP_MSG"). */
const OP_MSG = 2013
const HEADER_BYTES = 16
/** Header, flags and kind of the only section. */
const PREFIX_BYTES = HEADER_BYTES + 5
/** Maximum size of a reply to a login. */
const MAX_REPLY_BYTES = 65_536

/** Connection that runs the commands of one login. */
interface Wire {
  /** Runs a command. Commands must not overlap. @throws MongoNetworkError when the connection ends, or on timeout */
  command(command: Document): Promise<Document>
  /** Resolves when the connection has ended. Never rejects. */
  readonly ended: Promise<unknown>
  close(): void
}

/** Connects to a server. Closes the connection after `timeoutMs`, which bounds the whole login. */
function dial({ host, port, ca, source }: Pick<AdminTarget, 'host' | 'port' | 'ca' | 'source'>, timeoutMs: number): Wire {
  const at = { port, host, ...(source !== undefined && { localAddress: source }) }
  const socket: Socket = ca === undefined ? connect(at) : connectTls({ ...at, ca })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  let failure = new MongoNetworkError('the server ended the connection')
  let received = Buffer.alloc(0)
  let waiting: PromiseWithResolvers<Document> | undefined

  function fail(error: MongoNetworkError): void {
    failure = error
    socket.destroy()
  }

  const timer = setTimeout(
    () => fail(new MongoNetworkError(`the server did not complete the login within ${timeoutMs} ms`)),
    timeoutMs,
  )
  socket.setNoDelay()
  socket.on('error', (cause) => fail(new MongoNetworkError('the connection failed', { cause })))
  socket.on('close', () => {
    clearTimeout(timer)
    waiting?.reject(failure)
  })
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length < HEADER_BYTES) return
    const length = received.readInt32LE()
    if (length > MAX_REPLY_BYTES || length < PREFIX_BYTES)
      return fail(new MongoNetworkError('the server sent an invalid message'))
    if (received.length < length) return
    const reply = BSON.deserialize(received.subarray(PREFIX_BYTES, length))
    received = received.subarray(length)
    waiting?.resolve(reply)
    waiting = undefined
  })

  return {
    ended,
    async command(command) {
      if (socket.destroyed) throw failure
      waiting = Promise.withResolvers()
      socket.write(messageOf(command))
      return waiting.promise
    },
    close: () => socket.destroy(),
  }
}

function messageOf(command: Document): Buffer {
  const body = BSON.serialize(command)
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeInt32LE(PREFIX_BYTES + body.length, 0)
  prefix.writeInt32LE(OP_MSG, 12)
  return Buffer.concat([prefix, body])
}
