import { z } from 'zod'
import { HOSTNAME } from '../../crds/tunnel.ts'
import { FrameError } from './frames.ts'

export const VERSION = 1

const Name = z.string().min(1).max(253)

/** Who speaks. */
const Hello = z.strictObject({
  version: z.literal(VERSION),
  /** Edges of another endpoint are no peers. */
  endpoint: Name,
  /** Its pod's. */
  edge: Name,
  /** Of its process: a restarted edge has another. */
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
  /** Id of the session that was its tunnel's newest when this one was last heard of. */
  heardAfter: z.uuid().optional(),
})
export type SessionEntry = z.output<typeof SessionEntry>

/** More sessions come in several messages: these are at most 50 KiB. */
export const SESSIONS_A_FRAME = 100

/** What changed among the sender's own sessions. */
const SessionChanges = z.strictObject({
  /** Those that were there when the link came about. */
  there: z.array(SessionEntry).max(SESSIONS_A_FRAME).optional(),
  /** All that were there have been said. */
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
  const result = schema.safeParse(jsonOf(payload))
  if (!result.success) throw new FrameError('a message between edges is not what it should be')
  return result.data
}

function jsonOf(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString('utf8'))
  } catch {
    return undefined
  }
}

/** A line for the terminal of a session's client. */
export interface Notice {
  readonly session: string
  readonly line: string
}

/** Characters of a line: more are cut off. */
const MAX_NOTICE = 400

export function encodeNotice({ session, line }: Notice): Buffer {
  return Buffer.concat([Buffer.of(session.length), Buffer.from(session, 'latin1'), Buffer.from(line.slice(0, MAX_NOTICE))])
}

/** @throws FrameError */
export function parseNotice(payload: Buffer): Notice {
  const end = 1 + payload.readUInt8(0)
  if (payload.length <= end) throw new FrameError('a notice without a line')
  return { session: payload.toString('latin1', 1, end), line: payload.toString('utf8', end) }
}

/** What a channel is wanted for. */
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
  if (payload.length <= 7 + length) throw new FrameError('a channel is wanted for no session')
  return {
    window: payload.readUInt32BE(0),
    origin: { address: payload.toString('latin1', 7, 7 + length), port: payload.readUInt16BE(4) },
    session,
  }
}
