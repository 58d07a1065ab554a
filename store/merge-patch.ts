import { isFields } from '../crds/formats/fields.ts'

/**
 * RFC 7396 JSON merge patch: objects are merged, `null` removes a member, anything else (arrays too) replaces what was there.
 * Nothing given is changed. Members called `__proto__` are dropped: assigning them would change the prototype instead.
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
