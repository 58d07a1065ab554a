import type { Modifications } from './forward-fields.ts'
import { Buffer } from 'node:buffer'
import { type Fields, MAX_FIELDS, readFields, STRIDE, valueEnd } from './fields.ts'
import { type Framing, readFraming } from './framing.ts'
import { RESPONSE_NAMES } from './names.ts'
import { hasBody, isRejection, keepsAlive } from './request-head.ts'

/** Use of the visitor's connection after a response. */
export type After = 'keep' | 'close' | 'keep-1.0' | 'upgrade'

/** Response of a backend that is being forwarded to the visitor. */
export interface Reply {
  readonly head: ResponseHead
  readonly kind: BodyKind
  /** Host of the tunnel, which limits the scope of its cookies. */
  readonly host: string
  readonly modifications: Modifications
}

/** Forwarded head, latin1. */
export interface ForwardedResponse {
  /** The whole head, or the part before the Date that the edge adds. */
  readonly text: string
  readonly isWhole: boolean
  /** The text as bytes, once it was forwarded twice: copying bytes costs less than writing text. */
  bytes: Buffer | undefined
  /** Inputs of the text beside the head. */
  readonly reply: Reply
  readonly after: After
  readonly chunked: boolean
}

/** Head of a response that has one meaning only. */
export interface ResponseHead extends Fields {
  readonly status: number
  /** Offset of the fields in the text. */
  readonly fieldsAt: number
  readonly minor: 0 | 1
  readonly framing: Framing
  /** Whether the connection can take another request, as far as the head says. */
  readonly keepAlive: boolean
  /** Head that was last forwarded for it; the next time it may be the same. */
  forwarded: ForwardedResponse | undefined
}

const DIGIT = 0x30

/** Received head: latin1, up to the CRLF of its last field. */
interface Source {
  readonly text: string
  readonly bytes: Uint8Array
}

function minorOf(text: string): 0 | 1 | undefined {
  if (text.startsWith('HTTP/1.1 ')) return 1
  return text.startsWith('HTTP/1.0 ') ? 0 : undefined
}

/** Reads a status of 100 to 599; returns 0 for others. */
function statusAt(bytes: Uint8Array, at: number): number {
  const hundreds = digitAt(bytes, at)
  const tens = digitAt(bytes, at + 1)
  const ones = digitAt(bytes, at + 2)
  return hundreds >= 1 && hundreds <= 5 && tens >= 0 && ones >= 0 ? hundreds * 100 + tens * 10 + ones : 0
}

function digitAt(bytes: Uint8Array, at: number): number {
  const digit = (bytes[at] ?? 0) - DIGIT
  return digit >= 0 && digit <= 9 ? digit : -1
}

/**
 * Returns the offset of the fields: after the reason phrase, which may be missing together with the blank before it. 0: the line is
 * invalid.
 */
function afterReason(bytes: Uint8Array, at: number): number {
  const end = bytes[at] === 0x20 ? valueEnd(bytes, at) : at
  return bytes[end] === 0x0d && bytes[end + 1] === 0x0a ? end + 2 : 0
}

/**
 * Reads the head of a response as strictly as that of a request. The text is latin1, up to the CRLF of its last field; `bytes` is the
 * same.
 * @returns undefined when it is invalid
 */
export function readResponseHead(text: string, bytes: Uint8Array = Buffer.from(text, 'latin1')): ResponseHead | undefined {
  const minor = minorOf(text)
  const status = minor === undefined ? 0 : statusAt(bytes, 9)
  const fieldsAt = afterReason(bytes, 12)
  return minor === undefined || status === 0 || fieldsAt === 0
    ? undefined
    : withFields({ text, bytes }, { status, fieldsAt, minor })
}

function withFields(
  { text, bytes }: Source,
  { status, fieldsAt, minor }: Pick<ResponseHead, 'status' | 'fieldsAt' | 'minor'>,
): ResponseHead | undefined {
  const at = readFields(bytes, fieldsAt, RESPONSE_NAMES)
  if (typeof at === 'string' || at.length > MAX_FIELDS * STRIDE) return undefined
  const framing = readFraming(text, at)
  if (isRejection(framing) || (framing.chunked && minor === 0)) return undefined
  // A 204 must have no framing fields (RFC 9110, section 8.6; RFC 9112, section 6.1). A backend that announces a body sends it, and it
  // would be read as the next response.
  const keepAlive = keepsAlive(framing, minor) && !(status === 204 && hasBody({ framing }))
  return { text, at, fieldsAt, status, minor, framing, keepAlive, forwarded: undefined }
}

/** How the body of a response ends (RFC 9112, section 6.3). */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close'

export function bodyKindOf({ status, framing }: ResponseHead, method: string): BodyKind {
  if (method === 'HEAD' || status === 204 || status === 304) return 'none'
  if (framing.chunked) return 'chunked'
  if (framing.length === undefined) return 'close'
  return framing.length === 0 ? 'none' : 'length'
}
