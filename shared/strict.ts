import { z } from 'zod'

type Schema = z.core.$ZodType
type Change = (schema: Schema) => Schema
/** What this file reads of the many shapes of `_zod.def`. */
interface Def extends z.core.$ZodTypeDef {
  readonly shape?: Readonly<Record<string, Schema>>
  readonly catchall?: Schema | undefined
  readonly options?: readonly Schema[]
  readonly items?: readonly Schema[]
  readonly getter?: () => Schema
}

/** Members of a `def` that hold one inner schema, over all schema types of zod 4. */
const INNER = ['innerType', 'element', 'keyType', 'valueType', 'left', 'right', 'in', 'out', 'rest'] as const

/** Getters, because a recursive shape refers to schemas that are not made yet. */
function lazyShape(shape: Readonly<Record<string, Schema>>, change: Change): Record<string, Schema> {
  const changed: Record<string, Schema> = {}
  for (const key of Object.keys(shape)) {
    Object.defineProperty(changed, key, { enumerable: true, get: () => change(shape[key] ?? z.never()) })
  }
  return changed
}

function innerOf(def: Def, change: Change): Record<string, unknown> {
  const parts: Record<string, unknown> = {}
  for (const name of INNER) {
    const inner = (def as unknown as Partial<Record<string, Schema>>)[name]
    if (inner?._zod) parts[name] = change(inner)
  }
  if (def.options) parts.options = def.options.map(change)
  if (def.items) parts.items = def.items.map(change)
  const { getter } = def
  if (getter) parts.getter = () => change(getter())
  return parts
}

/** The same schema with `catchall` on every object that does not declare one of its own, at any depth. */
function rebuild(schema: Schema, catchall: Schema, change: Change): Schema {
  const def: Def = schema._zod.def
  const changed = { ...def, ...innerOf(def, change) }
  if (def.type === 'object') {
    Object.defineProperty(changed, 'shape', { value: lazyShape(def.shape ?? {}, change), enumerable: true, configurable: true })
    Object.assign(changed, { catchall: def.catchall ?? catchall })
  }
  return z.core.clone(schema, changed, { parent: true })
}

function deep(catchall: Schema): <S extends z.ZodType>(schema: S) => S {
  const made = new WeakMap<Schema, Schema>()
  function change(schema: Schema): Schema {
    const known = made.get(schema)
    if (known) return known
    const changed = rebuild(schema, catchall, change)
    made.set(schema, changed)
    made.set(changed, changed)
    return changed
  }
  return (schema) => change(schema) as typeof schema
}

/**
 * The same schema, strict at every depth: a field that no schema names is an error. Input and output types, defaults,
 * checks and descriptions stay. An object with a `catchall` of its own (`z.looseObject`) keeps it. Cached per schema.
 */
export const strictDeep = deep(z.never())

/** The same schema, keeping unknown fields at every depth: for Kubernetes' own kinds, of which only a part is declared here. */
export const looseDeep = deep(z.unknown())
