import type { FieldError } from '../../shared/errors.ts'

export interface ParsedQuery {
  /** Value of each parameter; the first one of a duplicate. */
  readonly values: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]
}

/** Parses a query string strictly: invalid percent-encoding, a control character or a duplicate parameter is an error. */
export function parseQuery(query: string): ParsedQuery {
  // The null prototype makes `__proto__` an ordinary parameter.
  const values = Object.create(null) as Record<string, string>
  const errors: FieldError[] = []
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name, value] = partsOf(pair)
    const wrong = errorOf(name, value, values)
    if (wrong) errors.push(wrong)
    else if (name !== undefined && value !== undefined) values[name] = value
  }
  return { values, errors }
}

/** Decodes name and value; undefined marks a part that is not valid. */
function partsOf(pair: string): [name: string | undefined, value: string | undefined] {
  const at = pair.indexOf('=')
  return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
}

function errorOf(name: string | undefined, value: string | undefined, seen: object): FieldError | undefined {
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

/** Text without control characters, in escapes that every regular expression engine supports: the pattern is part of the OpenAPI document. */
export const NO_CONTROLS = /^[^\x00-\x1f\x7f-\x9f]*$/
export const NO_CONTROLS_RULE = 'must not contain control characters'

/** Whether `text` contains a control character (NUL included), which no name or value of this API may. */
export function hasControl(text: string): boolean {
  return !NO_CONTROLS.test(text)
}
