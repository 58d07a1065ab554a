import { z } from 'zod'

/** The seven allowed values of `motor`: engine family, then the exact version. */
export const MOTORS = [
  'mysql-5.7.38',
  'mysql-8.0.29',
  'mariadb-10.7.4',
  'postgresql-14.4.0',
  'postgresql-15.4.0',
  'mongodb-5.0.9',
  'mongodb-7.0.2',
] as const
export const Motor = z.enum(MOTORS).describe('Engine and exact version.')
export type Motor = z.output<typeof Motor>

export const FAMILIES = ['mysql', 'mariadb', 'postgresql', 'mongodb'] as const
export type Family = (typeof FAMILIES)[number]

/** Splits a motor: `postgresql-15.4.0` → family `postgresql`, version `15.4.0`. */
export function partsOf(motor: Motor): { family: Family; version: string } {
  const at = motor.indexOf('-')
  return { family: motor.slice(0, at) as Family, version: motor.slice(at + 1) }
}

/** Usual port of an engine family's servers. */
export const USUAL_PORTS: Readonly<Record<Family, number>> = { mysql: 3306, mariadb: 3306, postgresql: 5432, mongodb: 27017 }

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
