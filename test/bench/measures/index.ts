import type { Measure } from '../measure.ts'
import { createInstance } from './create-instance.ts'
import { createMany } from './create-many.ts'
import { idle } from './idle.ts'
import { coldStart, warmStart } from './start.ts'
import { tenThousand } from './ten-thousand.ts'

/** All measures, in the order they run. One more is one file and one line here. */
export const MEASURES: readonly Measure[] = [createInstance, createMany, warmStart, coldStart, idle, tenThousand]
