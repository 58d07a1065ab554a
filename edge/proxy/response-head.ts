import { type Fields, MAX_FIELDS, readFields, STRIDE, valueEnd } from './fields.ts'
import { type Framing, readFraming } from './framing.ts'
import { RESPONSE_NAMES } from './names.ts'
import { keepsAlive } from './request-head.ts'

/** Head of a response that has one meaning only. */
export interface ResponseHead extends Fields {
  readonly status: number
  /** Where the fields begin in the text. */
  readonly fieldsAt: number
  readonly minor: 0 | 1
  readonly framing: Framing
  readonly keepAlive: boolean
}

const DIGIT = 0x30

function minorOf(text: string): 0 | 1 | undefined {
  if (text.startsWith('HTTP/1.1 ')) return 1
  return text.startsWith('HTTP/1.0 ') ? 0 : undefined
}

/** 100 to 599, else 0. */
function statusAt(text: string, at: number): number {
  const hundreds = digitAt(text, at)
  const tens = digitAt(text, at + 1)
  const ones = digitAt(text, at + 2)
  return hundreds >= 1 && hundreds <= 5 && tens >= 0 && ones >= 0 ? hundreds * 100 + tens * 10 + ones : 0
}

function digitAt(text: string, at: number): number {
  const digit = text.charCodeAt(at) - DIGIT
  return digit >= 0 && digit <= 9 ? digit : -1
}

/** Where the fields begin: after the reason, which may be left out with the blank before it. 0: the line is not valid. */
function afterReason(text: string, at: number): number {
  const end = text.charCodeAt(at) === 0x20 ? valueEnd(text, at) : at
  return text.charCodeAt(end) === 0x0d && text.charCodeAt(end + 1) === 0x0a ? end + 2 : 0
}

/**
 * Reads the head of a response, as strictly as that of a request. The text is latin1, up to the CRLF of its last field.
 * @returns undefined when it is not valid
 */
export function readResponseHead(text: string): ResponseHead | undefined {
  const minor = minorOf(text)
  const status = minor === undefined ? 0 : statusAt(text, 9)
  const fieldsAt = afterReason(text, 12)
  return minor === undefined || status === 0 || fieldsAt === 0 ? undefined : withFields({ text, status, fieldsAt, minor })
}

function withFields(line: Pick<ResponseHead, 'text' | 'status' | 'fieldsAt' | 'minor'>): ResponseHead | undefined {
  const { text, status, fieldsAt, minor } = line
  const at = readFields(text, fieldsAt, RESPONSE_NAMES)
  if (typeof at === 'string' || at.length > MAX_FIELDS * STRIDE) return undefined
  const framing = readFraming(text, at)
  if (typeof framing === 'string' || (framing.chunked && minor === 0)) return undefined
  return { text, at, fieldsAt, status, minor, framing, keepAlive: keepsAlive(framing, minor) }
}

/** How the body of a response ends (RFC 9112, section 6.3). */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close'

export function bodyKindOf({ status, framing }: ResponseHead, method: string): BodyKind {
  if (method === 'HEAD' || status === 204 || status === 304) return 'none'
  if (framing.chunked) return 'chunked'
  if (framing.length === undefined) return 'close'
  return framing.length === 0 ? 'none' : 'length'
}
