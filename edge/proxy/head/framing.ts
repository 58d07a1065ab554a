import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { isToken, STRIDE } from './fields.ts'
import { CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE } from './names.ts'
import { bad, UNKNOWN_CODING } from '../errors.ts'

/** Framing of a message by its fields; each fact has one meaning only. */
export interface Framing {
  /** Content-Length; undefined when absent. */
  readonly length: number | undefined
  readonly chunked: boolean
  readonly host: string | undefined
  /** Names in its Connection fields, in lower case. */
  readonly connection: readonly string[]
  readonly upgrade: string | undefined
  readonly expect: string | undefined
}

interface Draft {
  length: number | undefined
  chunked: boolean
  /** Whether a transfer coding other than `chunked` is present. */
  coded: boolean
  host: string | undefined
  connection: readonly string[]
  upgrade: string | undefined
  expect: string | undefined
}

const NONE: readonly string[] = []
const KEEP_ALIVE: readonly string[] = ['keep-alive']

/** Maximum names in Connection: each field of a message is compared with all of them. */
const MAX_NAMES = 32
/** Maximum list elements in Connection, empty ones included. */
const MAX_PARTS = 2 * MAX_NAMES

/** Content-Length with at most 15 digits: below 2^53, which every reader parses alike. */
const LENGTH = /^\d{1,15}$/

/**
 * Reads framing strictly (RFC 9112, section 6): no Content-Length beside Transfer-Encoding, neither of them twice even when equal, no
 * coding but `chunked`.
 * @returns the framing, or the rejection of a request with these fields
 */
export function readFraming(text: string, at: readonly number[]): Framing | Rejection {
  const draft: Draft = {
    length: undefined,
    chunked: false,
    coded: false,
    host: undefined,
    connection: NONE,
    upgrade: undefined,
    expect: undefined,
  }
  for (let field = 0; field < at.length; field += STRIDE) {
    const take = TAKES[at[field + 4] ?? 0]
    const wrong = take?.(draft, text.slice(at[field + 2], at[field + 3]))
    if (wrong !== undefined) return bad(wrong)
  }
  const isEncoded = draft.chunked || draft.coded
  if (isEncoded && draft.length !== undefined) return bad('Content-Length and Transfer-Encoding exclude each other')
  return draft.coded ? UNKNOWN_CODING : draft
}

type Take = (draft: Draft, value: string) => string | undefined

/** Field handlers by kind; each returns a description of the error, or undefined. */
const TAKES: (Take | undefined)[] = []
TAKES[HOST] = (draft, value) => {
  if (draft.host !== undefined) return 'there is more than one Host'
  draft.host = value
  return undefined
}
TAKES[CONTENT_LENGTH] = (draft, value) => {
  if (draft.length !== undefined) return 'there is more than one Content-Length'
  if (!LENGTH.test(value)) return 'Content-Length is not a number'
  draft.length = Number(value)
  return undefined
}
TAKES[TRANSFER_ENCODING] = (draft, value) => {
  if (!draft.chunked && (value === 'chunked' || value.toLowerCase() === 'chunked')) {
    draft.chunked = true
    return undefined
  }
  const names = value.toLowerCase().split(',').map(codingName)
  draft.coded ||= names.every(isToken) && names.some((name) => name !== 'chunked')
  return draft.coded ? undefined : 'Transfer-Encoding must be chunked, once and without parameters'
}
TAKES[CONNECTION] = (draft, value) => {
  const names = value === 'keep-alive' ? KEEP_ALIVE : namesIn(value)
  if (names === undefined) return 'Connection is not a list of names'
  draft.connection = draft.connection.length === 0 ? names : [...draft.connection, ...names]
  return draft.connection.length > MAX_NAMES ? `Connection has more than ${MAX_NAMES} names` : undefined
}
TAKES[UPGRADE] = (draft, value) => {
  draft.upgrade = draft.upgrade === undefined ? value : `${draft.upgrade}, ${value}`
  return undefined
}
TAKES[EXPECT] = (draft, value) => {
  draft.expect = draft.expect === undefined ? value.toLowerCase() : `${draft.expect}, ${value.toLowerCase()}`
  return undefined
}

/** Name of a transfer coding without its parameters (RFC 9112, section 7). */
const codingName = (coding: string): string => (coding.split(';', 1)[0] ?? '').trim()

function namesIn(value: string): string[] | undefined {
  const names: string[] = []
  const parts = value.toLowerCase().split(',', MAX_PARTS + 1)
  if (parts.length > MAX_PARTS) return undefined
  for (const part of parts) {
    const name = part.trim()
    if (name === '') continue
    if (!isToken(name)) return undefined
    names.push(name)
  }
  return names
}
