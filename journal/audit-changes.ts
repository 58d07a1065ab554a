import { isDeepStrictEqual } from 'node:util'
import type { ValueDigest } from '../shared/audit-secrets.ts'
import { type Fields, isFields } from '../crds/formats/fields.ts'
import type { Audited } from './audited-object.ts'
import type { AuditRecord } from './port.ts'

/** One changed field; `from` is null where there was none, `to` where there is none any more. */
export type AuditChange = AuditRecord['changes'][number]

/** Fields that may open something: neither they nor their hashes are written down. */
const SECRET = new Set(['password', 'secret', 'sha256', 'token', 'tokenSalt'])

/**
 * What differs between an object before a write and after it, field by field; undefined: there was none, or is none any more. Lists are
 * compared whole, as a PATCH replaces them. Values of headers may be secrets: a digest takes their place. Pure.
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

/** An empty value, which removes a header, is no secret. */
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
