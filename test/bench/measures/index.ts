import type { Measure } from '../measure.ts'
import { clusterCreate } from './cluster-create.ts'
import { clusterIdle } from './cluster-idle.ts'
import { clusterInstall } from './cluster-install.ts'
import { clusterTenThousand } from './cluster-ten-thousand.ts'
import { createInstance } from './create-instance.ts'
import { createMany } from './create-many.ts'
import { idle } from './idle.ts'
import { coldStart, warmStart } from './start.ts'
import { tenThousand } from './ten-thousand.ts'

/** All measures of a home, in the order they run. One more is one file and one line here. */
export const MEASURES: Readonly<Record<'embedded' | 'cluster', readonly Measure[]>> = {
  embedded: [createInstance, createMany, warmStart, coldStart, idle, tenThousand],
  cluster: [clusterCreate, clusterIdle, clusterInstall, clusterTenThousand],
}
