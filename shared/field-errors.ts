import type { z } from 'zod'
import type { FieldError } from './errors.ts'
import './plain-words.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** `['spec', 'motors', 2, 'id']` → `spec.motors[2].id`; keys that are not plain words are quoted in brackets. */
export function fieldPath(path: Path): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(String(part))) text += text === '' ? String(part) : `.${String(part)}`
    else text += `[${JSON.stringify(String(part))}]`
  }
  return text
}

/** The alternative that was most likely meant: not one refused for its very type, and with the fewest errors. */
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

/**
 * Every violation of a failed parse: unknown fields each by name, unions by the alternative that was most likely meant; a field that breaks
 * two rules is there twice. Importing this module also makes zod's messages plain (plain-words.ts). `base` is put before each path.
 */
export function fieldErrorsOf(error: z.core.$ZodError, base: Path = []): FieldError[] {
  return error.issues.flatMap((issue) => expand(issue, base))
}
