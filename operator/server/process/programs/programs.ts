import type { Family } from '../../../../crds/motor.ts'
import { mongodb } from './mongodb.ts'
import { mariadb, mysql } from './mysql.ts'
import { postgresql } from './postgresql.ts'
import type { EngineProgram } from './program.ts'

/** Programs by engine family. A new family is one more file beside postgresql.ts, and a line here. */
export const PROGRAMS: Readonly<Partial<Record<Family, EngineProgram>>> = { postgresql, mysql, mariadb, mongodb }
