import type { FieldError } from '../../shared/errors.ts'

export interface ParsedQuery {
  /** Each parameter once; the first value of a duplicate. */
  readonly values: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]
}

/** Parses a query string strictly: what cannot be decoded, holds a control character or comes twice is an error, never a guess. */
export function parseQuery(query: string): ParsedQuery {
  // A null prototype: `__proto__` is then a parameter like any other.
  const values = Object.create(null) as Record<string, string>
  const errors: FieldError[] = []
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name, value] = partsOf(pair)
    const wrong = ruleBrokenBy(name, value, values)
    if (wrong) errors.push(wrong)
    else if (name !== undefined && value !== undefined) values[name] = value
  }
  return { values, errors }
}

/** Name and value, decoded; undefined where that fails. */
function partsOf(pair: string): [name: string | undefined, value: string | undefined] {
  const at = pair.indexOf('=')
  return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
}

function ruleBrokenBy(name: string | undefined, value: string | undefined, seen: object): FieldError | undefined {
  if (name === undefined || value === undefined) return { field: name ?? 'query', message: 'is not valid percent-encoded UTF-8' }
  if (hasControl(name)) return { field: 'query', message: NO_CONTROLS_RULE }
  if (hasControl(value)) return { field: name, message: NO_CONTROLS_RULE }
  return name in seen ? { field: name, message: 'must be given once' } : undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** No control characters, in escapes that every engine of regular expressions has: the pattern is part of the OpenAPI document. */
export const NO_CONTROLS = /^[^\x00-\x1f\x7f-\x9f]*$/
export const NO_CONTROLS_RULE = 'must not contain control characters'

/** True when `text` has a control character (NUL among them), which no name or value of this API may have. */
export function hasControl(text: string): boolean {
  return !NO_CONTROLS.test(text)
}
