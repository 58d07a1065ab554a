import { z } from 'zod'
import type { FieldError } from './errors.ts'

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID',
  guid: 'must be a UUID',
  url: 'must be a URL',
  email: 'must be an email address',
  datetime: 'must be a UTC time such as 2030-01-31T12:00:00Z',
  base64: 'must be base64',
  ipv4: 'must be an IPv4 address',
  ipv6: 'must be an IPv6 address',
  cidrv4: 'must be an IPv4 range such as 10.0.0.0/8',
  cidrv6: 'must be an IPv6 range such as fd00::/8',
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'must be a string',
  number: 'must be a number',
  int: 'must be a whole number',
  boolean: 'must be true or false',
  object: 'must be an object',
  record: 'must be an object',
  array: 'must be a list',
  null: 'must be null',
  never: 'is not allowed',
}

const UNITS: Readonly<Record<string, string>> = { string: ' characters long', array: ' items long', set: ' items long' }

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/**
 * Returns every violation of a failed parse. Each unknown field is named, a union reports its most likely alternative, and a field that
 * breaks two rules appears twice. `base` is prepended to each path. Importing this module also sets zod's messages.
 */
export function fieldErrorsOf(error: z.core.$ZodError, base: Path = []): FieldError[] {
  return error.issues.flatMap((issue) => expand(issue, base))
}

/** Makes a zod error option: `rule` for an invalid value, "is required" for an absent one. */
export const ruleMessage = (rule: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'is required' : rule),
})

/** Formats a path: `['spec', 'motors', 2, 'id']` → `spec.motors[2].id`. Keys that are not identifiers are quoted in brackets. */
export function fieldPath(path: Path): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(String(part))) text += text === '' ? String(part) : `.${String(part)}`
    else text += `[${JSON.stringify(String(part))}]`
  }
  return text
}

/** Returns the issues of the most likely alternative of a union: the fewest issues, among the alternatives whose type matches the input. */
function nearest(alternatives: readonly (readonly Issue[])[]): readonly Issue[] {
  const meant = alternatives.filter((issues) => !issues.some((issue) => issue.code === 'invalid_type' && issue.path.length === 0))
  return [...meant].sort((a, b) => a.length - b.length)[0] ?? []
}

function expand(issue: Issue, base: Path): FieldError[] {
  const path = [...base, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ field: fieldPath([...path, key]), message: issue.message }))
  }
  if (issue.code === 'invalid_union') {
    const inner = nearest(issue.errors)
    if (inner.length > 0) return inner.flatMap((each) => expand(each, path))
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map((each) => ({ field: fieldPath(path), message: `has a name that ${each.message}` }))
  }
  return [{ field: fieldPath(path), message: issue.message }]
}

/** Returns the violated rule as text that follows the name of the field: `must be a UUID`, `is required`. Never contains the value. */
function messageOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return mistyped(issue)
    case 'invalid_value':
      return (issue.input === undefined ? 'is required and ' : '') + oneOf(issue.values)
    case 'too_big':
      return bound('most', issue.maximum, issue)
    case 'too_small':
      return bound('least', issue.minimum, issue)
    case 'invalid_format':
      return format(issue)
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'unrecognized_keys':
      return unrecognized(issue)
    default:
      return 'does not have an allowed form'
  }
}

const oneOf = (values: readonly unknown[]): string =>
  values.length === 1 ? `must be ${String(values[0])}` : `must be one of: ${values.map(String).join(', ')}`

function bound(word: string, limit: number | bigint, issue: { origin: string; exact?: boolean; inclusive?: boolean }): string {
  const relation = issue.exact
    ? 'exactly'
    : issue.inclusive === false
      ? word === 'most'
        ? 'less than'
        : 'more than'
      : `at ${word}`
  return `must be ${relation} ${String(limit)}${UNITS[issue.origin] ?? ''}`
}

/** Bounds of the list of known fields: beyond either of them an error would be longer than it helps. */
const MAX_KNOWN = 12
const MAX_UNKNOWN = 3

function unrecognized({ keys, inst }: z.core.$ZodRawIssue<z.core.$ZodIssueUnrecognizedKeys>): string {
  const known = inst instanceof z.core.$ZodObject ? Object.keys(inst._zod.def.shape) : []
  const isShort = known.length > 0 && known.length <= MAX_KNOWN && keys.length <= MAX_UNKNOWN
  return `is not a known field${isShort ? `; known here: ${known.join(', ')}` : ''}`
}

const mistyped = (issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string =>
  issue.input === undefined ? 'is required' : (TYPES[issue.expected] ?? `must be of type ${issue.expected}`)

function format(issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidStringFormat>): string {
  if (issue.format === 'regex') return `must match the pattern ${String(issue.pattern).replace(/^\/(.*)\/[a-z]*$/, '$1')}`
  return FORMATS[issue.format] ?? `must be a valid ${issue.format}`
}

// Set as zod's locale: every parse uses these messages, and a schema's own message still takes precedence.
z.config({ localeError: messageOf })
