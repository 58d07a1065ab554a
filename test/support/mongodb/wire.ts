import { connect, type Socket } from 'node:net'
import { Binary, BSON, type Document } from 'mongodb'
import { createScram } from '../../../operator/engines/scram.ts'
import { SCRAM_ITERATIONS } from '../../../operator/engines/mongodb/settings.ts'

/** Opcode of messages, and the bytes before a message's document: header, flags and kind (MongoDB documentation, "MongoDB Wire Protocol"). */
const OP_MSG = 2013
const HEADER_BYTES = 16
const PREFIX_BYTES = HEADER_BYTES + 5

/** Connection of a client that is no driver: it sends nothing of its own, in particular no session. */
export interface Wire {
  /** Sends a command and returns the answer. Commands must not overlap. */
  command(command: Document): Promise<Document>
  close(): void
}

/** Connects to a server on loopback, without a login. */
export function openWire(port: number): Wire {
  const socket: Socket = connect(port, '127.0.0.1')
  let received = Buffer.alloc(0)
  let waiting: PromiseWithResolvers<Document> | undefined
  socket.on('error', () => undefined)
  socket.on('close', () => waiting?.reject(new Error('the connection has ended')))
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length < HEADER_BYTES || received.length < received.readInt32LE()) return
    waiting?.resolve(BSON.deserialize(received.subarray(PREFIX_BYTES), { promoteLongs: false }))
    received = Buffer.alloc(0)
  })
  return {
    async command(command) {
      const body = BSON.serialize(command)
      const prefix = Buffer.alloc(PREFIX_BYTES)
      prefix.writeInt32LE(PREFIX_BYTES + body.length, 0)
      prefix.writeInt32LE(OP_MSG, 12)
      waiting = Promise.withResolvers()
      socket.write(Buffer.concat([prefix, body]))
      return waiting.promise
    },
    close: () => socket.destroy(),
  }
}

/** Connects to a server on loopback, and logs in. */
export async function logInByWire(port: number, { name, password }: { name: string; password: string }): Promise<Wire> {
  const wire = openWire(port)
  const exchange = createScram(SCRAM_ITERATIONS).exchange(password, name)
  const textOf = ({ payload }: Document) =>
    Buffer.from((payload as Binary).buffer).toString('utf8', 0, (payload as Binary).position)
  const payloadOf = (text: string) => new Binary(Buffer.from(text))
  const options = { skipEmptyExchange: true }
  const start = { saslStart: 1, mechanism: exchange.mechanism, payload: payloadOf(exchange.first), options, $db: name }
  const first = await wire.command(start)
  const payload = payloadOf(await exchange.answer(textOf(first)))
  const last = await wire.command({ saslContinue: 1, conversationId: first.conversationId as unknown, payload, $db: name })
  if (last.done !== true) throw new Error(`the login of ${name} does not work`)
  return wire
}
