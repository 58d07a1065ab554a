import { z } from 'zod'

const Fields = z.record(z.string(), z.unknown())
/** ManagedFieldsEntry of meta/v1. */
const Entries = z.array(
  z.object({ manager: z.string().default(''), subresource: z.string().default(''), fieldsV1: Fields.default({}) }),
)

/** Path that any writer may set on a StatefulSet: `kubectl rollout restart` sets an annotation of the pods. */
const ALLOWED = ['f:spec', 'f:template', 'f:metadata']

/**
 * Whether a manager other than `manager` owns a part of an object's spec.
 * @param managedFields of the metadata, as the API server sends them
 */
export function foreignSpec(managedFields: unknown, manager: string): boolean {
  const entries = Entries.safeParse(managedFields)
  if (!entries.success) return false
  return entries.data.some((entry) => entry.manager !== manager && entry.subresource === '' && ownsSpec(entry.fieldsV1))
}

function ownsSpec(fields: Readonly<Record<string, unknown>>): boolean {
  return leaves(fields['f:spec'], ['f:spec']).some((path) => !ALLOWED.every((part, index) => path[index] === part))
}

/** Paths of all fields without subfields. `.` stands for the field itself, which every owner of a subfield shares. */
function leaves(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
  const fields = Fields.safeParse(value)
  if (!fields.success) return []
  const below = Object.entries(fields.data).filter(([name]) => name !== '.')
  return below.length === 0 ? [path] : below.flatMap(([name, inner]) => leaves(inner, [...path, name]))
}
