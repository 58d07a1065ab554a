import { isFields } from '../crds/formats/fields.ts'

/**
 * Applies a JSON merge patch (RFC 7396): objects are merged, `null` removes a member, other values (arrays too) replace the old value.
 * The arguments are not changed. Members named `__proto__` are dropped, because assigning them would change the prototype.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  const result: Record<string, unknown> = isFields(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (name === '__proto__' || value === undefined) continue
    if (value === null) Reflect.deleteProperty(result, name)
    else result[name] = mergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value)
  }
  return result
}
