import type { Family } from '../../../crds/motor.ts'
import type { EnginePod } from './engine-pod.ts'
import { mariadbPod, mysqlPod } from './mysql.ts'
import { mongodbPod } from './mongodb.ts'
import { postgresqlPod } from './postgresql.ts'

/** Pods by engine family. A new family is one more file beside postgresql.ts, and a line here. */
export const ENGINE_PODS: Readonly<Record<Family, EnginePod>> = {
  postgresql: postgresqlPod,
  mysql: mysqlPod,
  mariadb: mariadbPod,
  mongodb: mongodbPod,
}
