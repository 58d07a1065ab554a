import type { z } from 'zod'
import type { FieldError } from './errors.ts'
import './zod-messages.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

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

/**
 * Returns every violation of a failed parse. Each unknown field is named, a union reports its most likely alternative, and a field that
 * breaks two rules appears twice. `base` is prepended to each path. Importing this module also sets zod's messages (zod-messages.ts).
 */
export function fieldErrorsOf(error: z.core.$ZodError, base: Path = []): FieldError[] {
  return error.issues.flatMap((issue) => expand(issue, base))
}
