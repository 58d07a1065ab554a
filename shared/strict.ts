import { z } from 'zod'

type Schema = z.core.$ZodType
type Change = (schema: Schema) => Schema
/** Members of `_zod.def` that this file reads. */
interface Def extends z.core.$ZodTypeDef {
  readonly shape?: Readonly<Record<string, Schema>>
  readonly catchall?: Schema | undefined
  readonly options?: readonly Schema[]
  readonly items?: readonly Schema[]
  readonly getter?: () => Schema
}

/** Members of a `def` that hold one inner schema, for all schema types of zod 4. */
const INNER = ['innerType', 'element', 'keyType', 'valueType', 'left', 'right', 'in', 'out', 'rest'] as const

/** Changes the schemas of a shape on access: a recursive shape refers to schemas that do not exist yet. */
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

/** Copies a schema with `catchall` on every object, at any depth, that does not declare its own. */
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
 * Returns a schema that is strict at every depth: an undeclared field is an error. Input and output types, defaults,
 * checks and descriptions stay. An object with its own `catchall` (`z.looseObject`) keeps it. Cached per schema.
 */
export const strictDeep = deep(z.never())

/** Returns a schema that keeps unknown fields at every depth: for Kubernetes' kinds, which are declared only in part. */
export const looseDeep = deep(z.unknown())
