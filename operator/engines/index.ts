import type { Family } from '../../crds/motor.ts'
import type { Engine } from './engine.ts'
import { mongodb } from './mongodb/mongodb.ts'
import { mariadb, mysql } from './mysql/mysql.ts'
import { postgresql } from './postgresql/postgresql.ts'

/** Engine families that Mooring can host, by name. */
export const ENGINES: ReadonlyMap<Family, Engine> = new Map(
  [postgresql, mysql, mariadb, mongodb].map((engine) => [engine.family, engine]),
)
