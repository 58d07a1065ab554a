import { isDeepStrictEqual } from 'node:util'
import type { ValueDigest } from '../shared/audit-secrets.ts'
import { type Fields, isFields } from '../crds/formats/fields.ts'
import type { Audited } from './audited-object.ts'
import type { AuditRecord } from './port.ts'

/** One changed field. `from` is null for a field that was added, `to` is null for a field that was removed. */
export type AuditChange = AuditRecord['changes'][number]

/** Fields that hold credentials. The audit log records neither their values nor their hashes. */
const SECRET = new Set(['password', 'secret', 'sha256', 'token', 'tokenSalt'])

/**
 * Returns the fields that a write changed. `before` is undefined for a creation, `after` for a deletion. Lists are compared
 * whole, as a PATCH replaces them. Header values may be secrets: a digest replaces each. Pure.
 */
export function auditChanges(
  before: Audited | undefined,
  after: Audited | undefined,
  digest: ValueDigest,
): readonly AuditChange[] {
  const owner = (after ?? before)?.resource.id ?? ''
  const shown = (audited: Audited | undefined): Fields =>
    withoutHeaderValues(withoutSecrets(audited?.fields ?? {}) as Fields, (value) => digest(owner, value))
  const [from, to] = [shown(before), shown(after)]
  return keysOf(from, to).flatMap((key) => changesAt(key, from[key], to[key]))
}

function changesAt(path: string, from: unknown, to: unknown): AuditChange[] {
  if (isDeepStrictEqual(from, to)) return []
  if (!isFields(from) || !isFields(to)) return [{ path, from: from ?? null, to: to ?? null }]
  return keysOf(from, to).flatMap((key) => changesAt(`${path}.${key}`, from[key], to[key]))
}

const keysOf = (from: Fields, to: Fields): readonly string[] => [...new Set([...Object.keys(from), ...Object.keys(to)])]

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isFields(value)) return value
  const kept = Object.entries(value).filter(([key]) => !SECRET.has(key))
  return Object.fromEntries(kept.map(([key, field]) => [key, withoutSecrets(field)]))
}

/** Replaces header values by digests. An empty value, which removes a header, is not secret and stays. */
function withoutHeaderValues(fields: Fields, digest: (value: string) => string): Fields {
  const { config } = fields
  if (!isFields(config) || !Array.isArray(config.liveHeaderModifications)) return fields
  const items: readonly unknown[] = config.liveHeaderModifications
  const liveHeaderModifications = items.map((item) => {
    if (!isFields(item) || item.value === undefined || item.value === '') return item
    return { ...item, value: digest(typeof item.value === 'string' ? item.value : JSON.stringify(item.value)) }
  })
  return { ...fields, config: { ...config, liveHeaderModifications } }
}
