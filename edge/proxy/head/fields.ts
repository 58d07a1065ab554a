import { FORWARDED, isForwarded, type NameTable } from './names.ts'

/** Maximum bytes of a head, and maximum number of its fields. */
export const MAX_HEAD = 32_768
export const MAX_FIELDS = 100

const TOKEN = 1
const VALUE = 2
const TARGET = 4

const COLON = 0x3a
const CR = 0x0d
const LF = 0x0a

/**
 * Syntax classes of each byte (RFC 9110, sections 5.5 and 5.6.2; RFC 9112, section 3.2, with the ASCII characters that browsers do not
 * escape, and bytes above ASCII, which other clients do not).
 */
const CLASS = new Uint8Array(256)
for (let code = 0; code < 256; code++) {
  const printable = code > 0x20 && code !== 0x7f
  const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(code))
  CLASS[code] =
    (token ? TOKEN : 0) | (printable || code === 0x20 || code === 0x09 ? VALUE : 0) | (printable && code !== 0x23 ? TARGET : 0)
}

function endOf(bytes: Uint8Array, at: number, wanted: number): number {
  let end = at
  while (end < bytes.length && ((CLASS[bytes[end] ?? 0] ?? 0) & wanted) !== 0) end++
  return end
}

/** Returns the end of the token that begins at `at`; `at` itself when there is no token. */
export const tokenEnd = (bytes: Uint8Array, at: number): number => endOf(bytes, at, TOKEN)
export const targetEnd = (bytes: Uint8Array, at: number): number => endOf(bytes, at, TARGET)
export const valueEnd = (bytes: Uint8Array, at: number): number => endOf(bytes, at, VALUE)

function isAll(text: string, wanted: number): boolean {
  for (let at = 0; at < text.length; at++) if (((CLASS[text.charCodeAt(at)] ?? 0) & wanted) === 0) return false
  return true
}

/** Whether the text is a valid field value. */
export const isFieldValue = (text: string): boolean => isAll(text, VALUE)
export const isToken = (text: string): boolean => text.length > 0 && isAll(text, TOKEN)

/** Numbers that one field takes in {@link Fields.at}. */
export const STRIDE = 5

/**
 * Fields of a head, as offsets into its text: `at[i]` and `at[i+1]` bound the name, `at[i+2]` and `at[i+3]` the value without
 * surrounding blanks, `at[i+4]` is its kind; `i` advances by {@link STRIDE}. The line extends from `at[i]` to the end of its CRLF,
 * where the next one begins.
 */
export interface Fields {
  readonly text: string
  readonly at: readonly number[]
}

/**
 * Reads field lines from `start` to the end, which must be the CRLF of the last one (RFC 9112, section 5), in one pass over their
 * bytes. Rejects continued lines (obs-fold), a bare LF or CR, a blank before the colon, and control characters.
 * @returns the offsets, or a description of the error
 */
export function readFields(bytes: Uint8Array, start: number, names: NameTable): readonly number[] | string {
  const at: number[] = []
  let line = start
  while (line < bytes.length) {
    const nameEnd = tokenEnd(bytes, line)
    if (nameEnd === line || bytes[nameEnd] !== COLON) return 'a field has no valid name'
    let from = nameEnd + 1
    while (isBlank(bytes[from])) from++
    const stop = valueEnd(bytes, from)
    if (bytes[stop] !== CR || bytes[stop + 1] !== LF) return 'a line has a character that is not allowed'
    let to = stop
    while (to > from && isBlank(bytes[to - 1])) to--
    at.push(line, nameEnd, from, to, isForwarded(bytes, line, nameEnd) ? FORWARDED : names.kindOf(bytes, line, nameEnd))
    line = stop + 2
  }
  return at
}

const isBlank = (code: number | undefined): boolean => code === 0x20 || code === 0x09

/**
 * Returns the values of all fields of a name in lower case, joined as a list (RFC 9110, section 5.3). Undefined: there is no such
 * field.
 */
export function valueOf({ text, at }: Fields, name: string): string | undefined {
  let found: string | undefined
  for (let field = 0; field < at.length; field += STRIDE) {
    const [start = 0, end = 0] = [at[field], at[field + 1]]
    if (end - start !== name.length || text.slice(start, end).toLowerCase() !== name) continue
    const value = text.slice(at[field + 2], at[field + 3])
    found = found === undefined ? value : `${found}, ${value}`
  }
  return found
}
