import { FORWARDED, isForwarded, type NameTable } from './names.ts'

/** Bytes of a head, and fields in it, that are taken. */
export const MAX_HEAD = 32_768
export const MAX_FIELDS = 100

const TOKEN = 1
const VALUE = 2
const TARGET = 4

/** What each byte may stand in (RFC 9110, sections 5.5 and 5.6.2; RFC 9112, section 3.2, with the ASCII characters that browsers do not escape). */
const CLASS = new Uint8Array(256)
for (let code = 0; code < 256; code++) {
  const printable = code > 0x20 && code !== 0x7f
  const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(code))
  CLASS[code] =
    (token ? TOKEN : 0) |
    (printable || code === 0x20 || code === 0x09 ? VALUE : 0) |
    (printable && code < 0x80 && code !== 0x23 ? TARGET : 0)
}

function endOf(text: string, at: number, wanted: number): number {
  let end = at
  while (end < text.length && ((CLASS[text.charCodeAt(end)] ?? 0) & wanted) !== 0) end++
  return end
}

/** Where the token that begins at `at` ends; `at` itself when none does. */
export const tokenEnd = (text: string, at: number): number => endOf(text, at, TOKEN)
export const targetEnd = (text: string, at: number): number => endOf(text, at, TARGET)
export const valueEnd = (text: string, at: number): number => endOf(text, at, VALUE)

/** Whether the text may be a field's value. */
export const isFieldValue = (text: string): boolean => valueEnd(text, 0) === text.length
export const isToken = (text: string): boolean => text.length > 0 && tokenEnd(text, 0) === text.length

/** What no value may hold, looked for in one pass: control characters, a CR or LF without the other. */
const NOT_IN_LINES = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/

/** Numbers that one field takes up in {@link Fields.at}. */
export const STRIDE = 5

/**
 * The fields of a head, as places in its text: `at[i]` and `at[i+1]` bound the name, `at[i+2]` and `at[i+3]` the value without the blanks around it,
 * `at[i+4]` is its kind; `i` moves by {@link STRIDE}. The line goes from `at[i]` to past the CRLF, where the next one begins.
 */
export interface Fields {
  readonly text: string
  readonly at: readonly number[]
}

/**
 * Reads field lines from `start` to the end of the text, which must be the CRLF of the last one (RFC 9112, section 5). A line that is continued
 * (obs-fold), a bare LF or CR, a blank before the colon, a control character: none is taken.
 * @returns what is wrong, or their places
 */
export function readFields(text: string, start: number, names: NameTable): readonly number[] | string {
  if (NOT_IN_LINES.test(text)) return 'a line has a character that is not allowed'
  const at: number[] = []
  let line = start
  while (line < text.length) {
    const nameEnd = tokenEnd(text, line)
    if (nameEnd === line || text.charCodeAt(nameEnd) !== 0x3a) return 'a field has no valid name'
    let from = nameEnd + 1
    while (isBlank(text.charCodeAt(from))) from++
    const stop = text.indexOf('\r\n', from)
    if (stop < 0) return 'the last line has no end'
    let to = stop
    while (to > from && isBlank(text.charCodeAt(to - 1))) to--
    at.push(line, nameEnd, from, to, isForwarded(text, line, nameEnd) ? FORWARDED : names.kindOf(text, line, nameEnd))
    line = stop + 2
  }
  return at
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** The values of the fields of this name, in lower case, joined as a list (RFC 9110, section 5.3); undefined: there is none. */
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
