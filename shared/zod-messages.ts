import { z } from 'zod'

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

const mistyped = (issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string =>
  issue.input === undefined ? 'is required' : (TYPES[issue.expected] ?? `must be of type ${issue.expected}`)

function format(issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidStringFormat>): string {
  if (issue.format === 'regex') return `must match the pattern ${String(issue.pattern).replace(/^\/(.*)\/[a-z]*$/, '$1')}`
  return FORMATS[issue.format] ?? `must be a valid ${issue.format}`
}

/** Makes a zod error option: `rule` for an invalid value, "is required" for an absent one. */
export const ruleMessage = (rule: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'is required' : rule),
})

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
      return 'is not a known field'
    default:
      return 'does not have an allowed form'
  }
}

// Set as zod's locale: every parse uses these messages, and a schema's own message still takes precedence.
z.config({ localeError: messageOf })
