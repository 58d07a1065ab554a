import type { Family } from '../../../../crds/motor.ts'
import { postgresql } from './postgresql.ts'
import type { EngineProgram } from './program.ts'

/** Another engine family is one more file beside postgresql.ts, and a line here. */
export const PROGRAMS: Readonly<Partial<Record<Family, EngineProgram>>> = { postgresql }
