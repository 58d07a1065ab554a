import type { Family } from '../../../crds/motor.ts'
import type { EnginePod } from './engine-pod.ts'
import { postgresqlPod } from './postgresql.ts'

/** Pods by engine family. A new family is one more file beside postgresql.ts, and a line here. */
export const ENGINE_PODS: Readonly<Partial<Record<Family, EnginePod>>> = { postgresql: postgresqlPod }
