import type { FieldError } from '../crds/errors.ts'

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
  if (hasControl(name)) return { field: 'query', message: 'must not contain control characters' }
  if (hasControl(value)) return { field: name, message: 'must not contain control characters' }
  return name in seen ? { field: name, message: 'must be given once' } : undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** True when `text` has a control character (NUL among them), which no name or value of this API may have. */
export function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text)
}
