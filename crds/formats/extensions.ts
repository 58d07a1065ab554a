import { z } from 'zod'
import type { Family } from '../motor.ts'

/** Name of a database extension, e.g. `uuid-ossp`. */
export const ExtensionName = z
  .string()
  .max(63)
  .regex(/^[a-z][a-z0-9_-]*$/, 'must be the name of an extension: lower-case letters, digits, _ and -')

/** Extensions that a Region allows by default: those that migrations commonly use (docs/api.md, "Extensions"). */
export const USUAL_EXTENSIONS: Readonly<Partial<Record<Family, readonly string[]>>> = {
  postgresql: [
    ...['btree_gin', 'btree_gist', 'citext', 'fuzzystrmatch', 'hstore', 'ltree'],
    ...['pg_trgm', 'pgcrypto', 'tablefunc', 'unaccent', 'uuid-ossp'],
  ],
}
