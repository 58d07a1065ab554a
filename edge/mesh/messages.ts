import { z } from 'zod'
import { HOSTNAME } from '../../crds/tunnel.ts'
import { jsonOf } from '../../shared/json.ts'
import { FrameError, dataHeader, Frame, frame } from './frames.ts'
import { Buffer } from 'node:buffer'
import type { ChannelWriter } from '../channels/channel.ts'

export const VERSION = 1

const Name = z.string().min(1).max(253)

/** Identity of the sender. */
const Hello = z.strictObject({
  version: z.literal(VERSION),
  /** Name of the TunnelEndpoint; edges of another endpoint are rejected. */
  endpoint: Name,
  /** Name of the edge's pod. */
  edge: Name,
  /** Id of the edge's process: a restarted edge has another. */
  instance: z.uuid(),
})
export type Hello = z.output<typeof Hello>

const SessionEntry = z.strictObject({
  id: z.uuid(),
  hostname: z.string().regex(HOSTNAME),
  clientIp: z.string().min(1).max(64),
  login: z.discriminatedUnion('authMethod', [
    z.strictObject({ authMethod: z.literal('key'), keyFingerprint: z.string().max(128) }),
    z.strictObject({ authMethod: z.literal('token'), passwordId: z.string().max(128) }),
  ]),
  since: z.number().min(0),
  /** Id of the session that was the newest of the tunnel when this session last answered. */
  heardAfter: z.uuid().optional(),
})
export type SessionEntry = z.output<typeof SessionEntry>

/** Maximum number of sessions in one message, which is then at most 50 KiB. More sessions come in several messages. */
export const SESSIONS_A_FRAME = 100

/** Changes of the sender's own sessions. */
const SessionChanges = z.strictObject({
  /** Sessions that existed when the link was established. */
  there: z.array(SessionEntry).max(SESSIONS_A_FRAME).optional(),
  /** Marks the end of the existing sessions. */
  complete: z.literal(true).optional(),
  added: z.array(SessionEntry).max(SESSIONS_A_FRAME).optional(),
  removed: z.array(z.uuid()).max(SESSIONS_A_FRAME).optional(),
  heard: z
    .array(z.strictObject({ id: z.uuid(), after: z.uuid() }))
    .max(SESSIONS_A_FRAME)
    .optional(),
})
export type SessionChanges = z.output<typeof SessionChanges>

export const encodeMessage = (message: Hello | SessionChanges): Buffer => Buffer.from(JSON.stringify(message))

/** @throws FrameError */
export const parseHello = (payload: Buffer): Hello => parsed(Hello, payload)
/** @throws FrameError */
export const parseSessionChanges = (payload: Buffer): SessionChanges => parsed(SessionChanges, payload)

function parsed<T>(schema: z.ZodType<T>, payload: Buffer): T {
  const result = schema.safeParse(jsonOf(payload.toString('utf8')))
  if (!result.success) throw new FrameError('invalid message between edges')
  return result.data
}

/** Line for the terminal of a session's client. */
export interface Notice {
  readonly session: string
  readonly line: string
}

/** Maximum characters of a line; the rest is cut off. */
const MAX_NOTICE = 400

export function encodeNotice({ session, line }: Notice): Buffer {
  return Buffer.concat([Buffer.of(session.length), Buffer.from(session, 'latin1'), Buffer.from(line.slice(0, MAX_NOTICE))])
}

/** @throws FrameError */
export function parseNotice(payload: Buffer): Notice {
  const end = 1 + payload.readUInt8(0)
  if (payload.length <= end) throw new FrameError('a notice frame has no line')
  return { session: payload.toString('latin1', 1, end), line: payload.toString('utf8', end) }
}

/** Request for a channel. */
export interface Open {
  readonly window: number
  readonly origin: { readonly address: string; readonly port: number }
  readonly session: string
}

export function encodeOpen({ window, origin, session }: Open): Buffer {
  const bytes = Buffer.alloc(7 + origin.address.length + session.length)
  bytes.writeUInt32BE(window, 0)
  bytes.writeUInt16BE(origin.port, 4)
  bytes.writeUInt8(origin.address.length, 6)
  bytes.write(origin.address, 7, 'latin1')
  bytes.write(session, 7 + origin.address.length, 'latin1')
  return bytes
}

/** @throws FrameError */
export function parseOpen(payload: Buffer): Open {
  const length = payload.readUInt8(6)
  const session = payload.toString('latin1', 7 + length)
  if (payload.length <= 7 + length) throw new FrameError('an open frame names no session')
  return {
    window: payload.readUInt32BE(0),
    origin: { address: payload.toString('latin1', 7, 7 + length), port: payload.readUInt16BE(4) },
    session,
  }
}

const EMPTY = Buffer.alloc(0)

/** Creates a writer that encodes channel messages as frames. The bound address of a forward is the id of the requested session. */
export function createFrameWriter(send: (bytes: Buffer) => void): ChannelWriter {
  const number = (value: number): Buffer => {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  return {
    exchanging: false,
    channels: {
      forwardedTcpip(channel, window, _maxPacket, { boundAddr, remoteAddr, remotePort }) {
        const open = { window, session: boundAddr, origin: { address: remoteAddr, port: remotePort } }
        send(frame(Frame.open, channel, encodeOpen(open)))
      },
      channelData(channel, data) {
        send(dataHeader(channel, data.length))
        send(data)
      },
      channelEOF: (channel) => send(frame(Frame.end, channel)),
      channelClose: (channel) => send(frame(Frame.close, channel)),
      channelFailure: () => send(EMPTY),
      channelWindowAdjust: (channel, bytes) => send(frame(Frame.window, channel, number(bytes))),
    },
  }
}
