import { isDeepStrictEqual } from 'node:util'
import { isFields } from '../crds/fields.ts'

/** One changed field; `from` is null where there was none, `to` where there is none any more. */
export interface SpecChange {
  readonly path: string
  readonly from: unknown
  readonly to: unknown
}

/** Fields that may open something: neither they nor their hashes are written down. */
const SECRET = new Set(['password', 'secret', 'sha256', 'token', 'tokenSalt'])

/**
 * What differs between two specs, field by field; lists are compared whole, as a PATCH replaces them. A spec that comes or goes is one
 * change. Pure.
 */
export function specChanges(before: unknown, after: unknown): readonly SpecChange[] {
  return changesAt('spec', withoutSecrets(before), withoutSecrets(after))
}

function changesAt(path: string, from: unknown, to: unknown): SpecChange[] {
  if (isDeepStrictEqual(from, to)) return []
  if (!isFields(from) || !isFields(to)) return [{ path, from: from ?? null, to: to ?? null }]
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])]
  return keys.flatMap((key) => changesAt(`${path}.${key}`, from[key], to[key]))
}

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isFields(value)) return value
  const kept = Object.entries(value).filter(([key]) => !SECRET.has(key))
  return Object.fromEntries(kept.map(([key, field]) => [key, withoutSecrets(field)]))
}
